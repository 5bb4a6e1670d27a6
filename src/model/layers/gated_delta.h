// GatedDelta: linear attention by the gated delta rule. Queries, keys and values pass through a
// short causal convolution; a state a head, which a step reads from one block of the cache and
// writes to another, stands for all tokens so far; the output is normed by head and gated.
//
// Tokens of a row are computed in their own order and the state is f32, so a row's bytes depend
// neither on where it was cut nor on the rows beside it.
//
// Immutable after loading; thread-safe but for the buffers.
//
// Source: Yang et al., "Gated Delta Networks" (2024); Qwen3-Next's and Qwen3.5's layers.
#pragma once

#include <cstdint>
#include <vector>

#include "model/batch.h"
#include "model/layers/activations.h"
#include "model/layers/decoder_buffers.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/model.h"

namespace lockstep {

struct GatedDeltaDims {
  int32_t k_heads = 0;
  int32_t v_heads = 0;  // a multiple of k_heads, each of which serves as many in a row
  int32_t k_dim = 0;    // of a head, a multiple of 16
  int32_t v_dim = 0;    // a multiple of 16
  int32_t taps = 0;     // of the convolution, 2 to kMaxTaps

  static constexpr int32_t kMaxTaps = 16;

  int32_t key_size() const { return k_heads * k_dim; }
  int32_t value_size() const { return v_heads * v_dim; }
  int32_t conv_size() const { return 2 * key_size() + value_size(); }
  int32_t heads_a_key() const { return v_heads / k_heads; }
  // What is kept of a sequence: the last taps - 1 inputs of the convolution, [taps - 1, conv_size],
  // and the heads' states, [v_heads] as kernels/recurrent.h has each.
  int64_t tail_floats() const { return int64_t{taps - 1} * conv_size(); }
  int64_t head_floats() const { return int64_t{k_dim} * v_dim; }
  int64_t state_floats() const { return tail_floats() + v_heads * head_floats(); }
};

// What a step of these layers writes into.
struct GatedDeltaBuffers {
  float* qkv = nullptr;    // [T, conv_size]: queries, keys, values of all heads
  float* mixed = nullptr;  // [T, conv_size], after the convolution
  float* z = nullptr;      // [T, value_size]
  float* b = nullptr;      // [T, v_heads padded]
  float* a = nullptr;      // [T, v_heads padded]
  float* beta = nullptr;   // [T, v_heads]
  float* decay = nullptr;  // [T, v_heads]
  float* zeros = nullptr;  // [conv_size], what the convolution reads before a sequence begins
  Activations out;         // [T, value_size]

  static Result<GatedDeltaBuffers> Allocate(Arena* arena, int32_t tokens,
                                            const GatedDeltaDims& dims, bool out_codes);
};

struct GatedDelta {
  GatedDeltaDims dims;
  Linear qkv;                      // [conv_size, d_model]
  Linear z;                        // [value_size, d_model]
  Linear b;                        // [v_heads, d_model]
  Linear a;                        // [v_heads, d_model]
  Linear out;                      // [d_model, value_size]
  std::vector<float> conv;         // [taps, conv_size]
  std::vector<double> decay_rate;  // [v_heads], above 0
  std::vector<float> dt_bias;      // [v_heads]
  RmsNorm norm;                    // [v_dim], of every head's output
  RmsNorm q_norm;                  // [k_dim], as UnitNorm makes them
  RmsNorm k_norm;

  struct Place {
    const Batch* batch = nullptr;
    int32_t group = 0;  // index of the states' cache group
    StateLayer states;  // of this layer
  };
  // From `normed` to g->out, which `out` is to multiply; writes the rows' next states.
  void Run(const Place& place, const Activations& normed, GatedDeltaBuffers* g,
           Compute* compute) const;

 private:
  void Convolve(const Place& place, GatedDeltaBuffers* g, Compute* compute) const;
  void Recur(const Place& place, GatedDeltaBuffers* g, Compute* compute) const;
  // Of the value heads of one key head, by token t.
  void SetGates(int32_t t, int32_t k_head, GatedDeltaBuffers* g) const;
};

// x * factor / sqrt(sum of x^2 + 1e-6) over heads of n, as an RMS norm.
RmsNorm UnitNorm(int32_t n, double factor);

}  // namespace lockstep
