// Kernels of linear attention: a short causal convolution, and the gated delta rule over a state.
// All f32. Tokens are computed one after the other in their own order, and what passes from one to
// the next is stored f32: so it makes no difference where a sequence is cut. All sums have one
// order, stated here, whatever the machine's vectors are.
//
// Source: Yang et al., "Gated Delta Networks" (2024).
#pragma once

#include <cstdint>

namespace lockstep::kernels {

// Columns of a state that lie side by side.
inline constexpr int32_t kStatePanel = 16;

// Some tokens of one sequence by one head. The state S is a matrix [k_dim, v_dim], kept as
// [v_dim / kStatePanel][k_dim][kStatePanel].
struct DeltaRuleSpan {
  const float* q = nullptr;  // [tokens, k_dim], token t at q + t * stride
  const float* k = nullptr;  // [tokens, k_dim]
  const float* v = nullptr;  // [tokens, v_dim]
  int64_t stride = 0;
  const float* decay = nullptr;  // token t's at decay + t * gate_stride
  const float* beta = nullptr;
  int64_t gate_stride = 0;
  int32_t tokens = 0;            // >= 1
  int32_t k_dim = 0;             // a multiple of 4
  int32_t v_dim = 0;             // a multiple of kStatePanel
  const float* state = nullptr;  // before the first token; null: zeros
  float* new_state = nullptr;    // after the last; another one than `state`
  float* out = nullptr;          // [tokens, v_dim], token t at out + t * out_stride
  int64_t out_stride = 0;
};

struct RecurrentKernels {
  // out[i] = silu(sum over j of weights[j * weight_stride + i] * rows[j][i]), rows[taps - 1] being
  // the token itself and those before it its predecessors. The sum is one chain of fused
  // multiply-adds, j ascending, from a product; silu(x) = x / (1 + exp(-x)).
  void (*short_conv)(const float* const* rows, const float* weights, int64_t weight_stride,
                     int32_t taps, int32_t n, float* out);

  // For each token: delta = beta (v - decay S^T k), S = decay S + k delta^T, out = S^T q.
  // S^T k is 4 chains of fused multiply-adds (row i of S in chain i % 4), added as (0 + 1) +
  // (2 + 3); S^T q is 2 chains; an element of S is fma(k, delta, decay * S).
  void (*delta_rule)(const DeltaRuleSpan& span);
};

}  // namespace lockstep::kernels
