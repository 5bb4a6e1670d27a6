// RMS norm of a step's rows into the activations that the following products read.
//
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/layers/activations.h"

namespace lockstep {

class RmsNorm {
 public:
  RmsNorm() = default;
  // weight [d_model]
  RmsNorm(std::vector<float> weight, float eps) : weight_(std::move(weight)), eps_(eps) {}

  // out[i] = norm(x[i]) for i < rows, in every form that `out` keeps; row i of x at x + i *
  // x_stride.
  void Apply(const float* x, int64_t x_stride, int32_t rows, Compute* compute,
             Activations* out) const;

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
