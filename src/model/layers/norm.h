// RMS norm of a step's rows into the activations that the following products read.
//
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/elementwise.h"
#include "model/layers/activations.h"

namespace lockstep {

class RmsNorm {
 public:
  RmsNorm() = default;
  // weight [d_model], or [head_dim]
  RmsNorm(std::vector<float> weight, float eps) : weight_(std::move(weight)), eps_(eps) {}

  // out[i] = norm(x[i]) for i < rows, in every form that `out` keeps; row i of x at x + i *
  // x_stride.
  void Apply(const float* x, int64_t x_stride, int32_t rows, Compute* compute,
             Activations* out) const;

  // x[i] = x[i] + norm(y[i]), both with rows `stride` apart; leaves norm(y[i]) in y.
  void AddNormed(float* y, int64_t stride, int32_t rows, Compute* compute, float* x) const;

  // x = norm(x), one vector: a head of a projection.
  void ApplyToHead(const kernels::ElementwiseKernels& elementwise, float* x) const {
    elementwise.rms_norm(x, weight_.data(), eps_, static_cast<int32_t>(weight_.size()), x);
  }

  bool empty() const { return weight_.empty(); }

  // out[i] = norm(x[rows[i]]).
  void Gather(const float* x, int64_t x_stride, std::span<const int32_t> rows, Compute* compute,
              Activations* out) const;

 private:
  template <typename RowOf>
  void Run(const RowOf& row_of, int32_t rows, Compute* compute, Activations* out) const;

  std::vector<float> weight_;
  float eps_ = 0.0f;
};

}  // namespace lockstep
