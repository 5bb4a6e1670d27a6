// SelfAttention: the projections around attention over the cache, and the norms of single heads
// where an architecture has them; its output may be gated. Immutable after loading; thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "model/layers/attention.h"
#include "model/layers/decoder_buffers.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"

namespace lockstep {

struct SelfAttention {
  Linear q;        // [heads * head_dim, d_model]; gated: [2 * heads * head_dim, d_model]
  Linear k;        // [kv_heads * head_dim, d_model]
  Linear v;        // [kv_heads * head_dim, d_model]
  Linear out;      // [d_model, heads * head_dim]
  RmsNorm q_norm;  // [head_dim], of every head of q before rotation; empty: none
  RmsNorm k_norm;  // [head_dim]
  // The second half of q's outputs are gates: attention's output times their sigmoids.
  bool gated = false;

  // What is about one step and one kind of layer.
  struct Place {
    const Batch* batch = nullptr;
    const AttentionPlan* plan = nullptr;
    const RopeTable* rope = nullptr;
    const kernels::KvLayer* cache = nullptr;
    int32_t group = 0;  // index of the layer's cache group
  };
  // From b->normed to b->attended, which `out` is to multiply; appends to the cache.
  void Run(const Place& place, DecoderBuffers* b, Compute* compute) const;
};

}  // namespace lockstep
