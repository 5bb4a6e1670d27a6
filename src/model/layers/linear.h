// Linear: y = x W^T + b with a packed W, and the products of a step shared out among the threads.
// Which thread computes which part never matters: parts are cut over rows and panels of outputs
// alone.
//
// Immutable after loading; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/gemm.h"
#include "model/compute.h"
#include "model/layers/activations.h"

namespace lockstep {

struct Linear {
  kernels::PackedMatrix matrix;        // [n, k]
  std::shared_ptr<const void> memory;  // owns the bytes that `matrix` views
  std::vector<float> bias;             // [n padded to 16]; empty when there is none

  bool integer() const {
    return matrix.code == kernels::WeightCode::kU4 || matrix.code == kernels::WeightCode::kI8;
  }
  int64_t bytes() const { return int64_t(matrix.panel_bytes) * matrix.panels(); }
};

struct Product {
  const Linear* linear = nullptr;
  float* out = nullptr;  // row t at out + t * out_stride
  int64_t out_stride = 0;
  bool add = false;  // out += instead of out =
};

// Computes every product of the same rows [0, rows) of x.
void Multiply(const Activations& x, int32_t rows, std::span<const Product> products,
              Compute* compute);

// What a gate's product passes through before it multiplies the other.
enum class Gate { kSilu, kGeluTanh };

// out = activation(x gate^T) * (x up^T), [rows, n] with row stride PaddedOutputs(n); `up_out` is
// room of the same size for the second product. REQUIRES: gate and up have the same shape.
void MultiplyGated(const Activations& x, int32_t rows, const Linear& gate, const Linear& up,
                   Gate activation, float* out, float* up_out, Compute* compute);

inline constexpr int32_t kRowTile = 128;  // rows whose activations stay in the second cache
inline constexpr int32_t kMinPanels = 4;  // panels an item takes at least, to be worth claiming

// The share `range` of one product, and of a gated one, for layers that cut their work themselves;
// rows are those of x and of the outputs alike. From within ParallelFor.
void MultiplyRange(const Activations& x, const Linear& linear, const kernels::GemmRange& range,
                   bool add, float* out, int64_t out_stride, Compute* compute, int32_t worker);
void MultiplyGatedRange(const Activations& x, const Linear& gate, const Linear& up, Gate activation,
                        const kernels::GemmRange& range, float* out, float* up_out,
                        Compute* compute, int32_t worker);

}  // namespace lockstep
