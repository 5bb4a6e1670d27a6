// LatentAttention: attention whose cache holds, of a position, one latent that all heads share and
// one rotary key, instead of keys and values by head.
//
// A head's keys and values are W_k c and W_v c of the latent c. W_k is multiplied to the query
// instead of every key, and W_v to the sum of latents instead of every value: q (W_k c) = (W_k^T q)
// c, and the sum of p W_v c = W_v (the sum of p c). So keys and values by head are never made, in
// a prompt neither: one arithmetic for every number of tokens.
//
// Immutable after loading; thread-safe but for the buffers.
//
// Source: DeepSeek-AI, "DeepSeek-V2" (2024), 2.1 and appendix C.
#pragma once

#include <cstdint>
#include <vector>

#include "model/layers/attention.h"
#include "model/layers/decoder_buffers.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"

namespace lockstep {

struct LatentDims {
  int32_t heads = 0;
  int32_t query_rank = 0;  // of the query's own latent; 0: queries are projected at once
  int32_t rank = 0;        // of a latent, a multiple of 16
  int32_t rope = 0;        // elements of a head that are rotated, and of the rotary key
  int32_t plain = 0;       // elements of a query head that are not
  int32_t value = 0;       // of a head's output, a multiple of 16

  int32_t query() const { return plain + rope; }  // of a head's projected query
  int32_t key() const { return rank + rope; }     // of what the cache keeps of a position
};

// One matrix a head, each of its own part of a row.
using HeadLinears = std::vector<Linear>;

struct LatentAttention {
  Linear query_down;       // [query_rank, d_model], where there is one
  RmsNorm query_norm;      // [query_rank]
  Linear query;            // [heads * query(), query_rank or d_model]; a head: plain, then rope
  Linear down;             // [key(), d_model]: the latent before its norm, then the rotary key
  RmsNorm norm;            // [rank]
  HeadLinears absorb_key;  // [heads] of [rank, plain]
  HeadLinears expand;      // [heads] of [value, rank]
  Linear out;              // [d_model, heads * value]

  struct Place {
    const Batch* batch = nullptr;
    const AttentionPlan* plan = nullptr;
    const RopeTable* rope = nullptr;
    const kernels::KvLayer* cache = nullptr;
    int32_t group = 0;  // index of the layer's cache group
  };
  struct Buffers;
  // From b->normed to b->attended, which `out` is to multiply; appends to the cache.
  void Run(const LatentDims& dims, const Place& place, Buffers* l, DecoderBuffers* b,
           Compute* compute) const;
};

// What the layers' products ask of the buffers.
struct LatentNeeds {
  void Add(const LatentAttention& attention, const AttentionShape& shape, DecoderNeeds* needs);

  bool query_codes = false;  // of the query's latent
  bool plain_codes = false;  // of the parts of queries that absorb_key multiplies
  bool mean_codes = false;   // of the sums of latents that `expand` multiplies
};

// What a step writes into beside DecoderBuffers, whose q is [T, heads * query()].
struct LatentAttention::Buffers {
  Activations query_latent;  // [T, query_rank]
  float* latent = nullptr;   // [T, key()]
  int64_t latent_stride = 0;
  float* absorbed = nullptr;        // [T, heads * key()], queries as the cache's keys are
  float* means = nullptr;           // [T, heads * rank], sums of latents by attention's weights
  kernels::QuantizedRows plain;     // [heads][T, plain]; codes null when no product wants them
  kernels::QuantizedRows of_means;  // [heads][T, rank]

  static Result<Buffers> Allocate(Arena* arena, int32_t tokens, const LatentDims& dims,
                                  const LatentNeeds& needs);
};

// The shape of attention over latents.
AttentionShape LatentShape(const LatentDims& dims, float scale);

}  // namespace lockstep
