// Row-wise kernels of a transformer: norms, activations, rotary embedding, reductions over logits.
// All f32. Sums run over 16 virtual lanes (element i to lane i % 16, fused multiply-add where
// squares are summed) and one fixed tree, so that their bits do not depend on the width of the
// machine's vectors; exp and log are polynomials of our own.
#pragma once

#include <cstdint>

namespace lockstep::kernels {

struct MaxIndex {
  float value = 0.0f;
  int32_t index = 0;  // the smallest that has the value
};

struct ElementwiseKernels {
  // out[i] = (x[i] * r) * weight[i], r = 1 / sqrt(mean(x^2) + eps). out may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, int32_t n, float* out);

  // out[i] = silu(gate[i]) * up[i], silu(x) = x / (1 + exp(-x)). out may be gate or up.
  void (*silu_mul)(const float* gate, const float* up, int32_t n, float* out);

  // Rotates the pairs (x[i], x[i + half]) for i < half by the angles whose cosine and sine are
  // given
  // ("rotate half"); elements from 2 * half on stay.
  void (*rope)(float* x, const float* cos, const float* sin, int32_t half);

  // x[i] = x[i] + y[i].
  void (*add)(const float* y, int32_t n, float* x);

  // x[i] = x[i] * factor.
  void (*scale)(float factor, int32_t n, float* x);

  // The largest value. A NaN anywhere gives a NaN value (so that a poisoned row is noticed). n
  // >= 1.
  MaxIndex (*max)(const float* x, int32_t n);

  // Sum over i of exp(x[i] - max).
  float (*sum_exp)(const float* x, float max, int32_t n);

  // out[i] = exp((x[i] - max) * inverse_temperature). out may be x.
  void (*exp)(const float* x, float max, float inverse_temperature, int32_t n, float* out);

  // out[i] = gelu(gate[i]) * up[i], where gelu(x) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) * (x +
  // 0.044715 x^3): the approximation 0.5 x (1 + tanh(u)). out may be gate or up.
  void (*gelu_mul)(const float* gate, const float* up, int32_t n, float* out);

  // out[i] = x[i] / (1 + exp(-gate[i])): x times the gate's sigmoid. out may be gate or x.
  void (*sigmoid_mul)(const float* gate, const float* x, int32_t n, float* out);
};

// Natural logarithm with our own polynomial, equal on every instruction set; x > 0 and finite.
float Log(float x);

}  // namespace lockstep::kernels
