// Activations: the rows that matrix products read, in f32 and, when an integer product wants them,
// also as codes with scales (kernels/gemm.h). Borrowed memory of the model's arena;
// thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/status.h"
#include "kernels/gemm.h"
#include "model/compute.h"

namespace lockstep {

struct Activations {
  float* f32 = nullptr;              // [rows, k], row t at f32 + t * stride
  int64_t stride = 0;                // k rounded up to a panel, so that products can be stored here
  kernels::QuantizedRows quantized;  // [rows, k]; codes is null when no product wants it
  int32_t k = 0;

  static Result<Activations> Allocate(Arena* arena, int32_t rows, int32_t k, bool quantized);

  // Fills `quantized` from `f32`, if it is wanted. Rows are shared among the workers when there are
  // many.
  void Quantize(int32_t rows, Compute* compute);
};

// The length of a row that a product with n outputs is stored in: outputs are written by whole
// panels.
constexpr int32_t PaddedOutputs(int32_t n) {
  return (n + kernels::kPanel - 1) / kernels::kPanel * kernels::kPanel;
}

// Calls body(first, last) over [0, rows) in pieces, by several workers when that is worth a
// barrier. What a piece computes must not depend on where it is cut.
template <typename Body>
void ForRows(Compute* compute, int32_t rows, int32_t rows_worth_sharing, Body&& body) {
  if (rows < rows_worth_sharing || compute->threads() == 1) {
    body(0, rows);
    return;
  }
  const int32_t piece = std::max(1, rows / (4 * compute->threads()));
  compute->pool().ParallelFor((rows + piece - 1) / piece, [&](int32_t item, int32_t) {
    body(item * piece, std::min(rows, (item + 1) * piece));
  });
}

}  // namespace lockstep
