#include "model/layers/norm.h"

namespace lockstep {
namespace {

constexpr int32_t kRowsWorthSharing = 8;

}  // namespace

template <typename RowOf>
void RmsNorm::Run(const RowOf& row_of, int32_t rows, Compute* compute, Activations* out) const {
  const int32_t n = static_cast<int32_t>(weight_.size());
  ForRows(compute, rows, kRowsWorthSharing, [&](int32_t first, int32_t last) {
    for (int32_t i = first; i < last; ++i) {
      compute->kernels().elementwise.rms_norm(row_of(i), weight_.data(), eps_, n,
                                              out->f32 + i * out->stride);
    }
    if (out->quantized.codes != nullptr) {
      compute->kernels().gemm.quantize(out->f32, out->stride, first, last, out->quantized);
    }
  });
}

void RmsNorm::Apply(const float* x, int64_t x_stride, int32_t rows, Compute* compute,
                    Activations* out) const {
  Run([&](int32_t i) { return x + i * x_stride; }, rows, compute, out);
}

void RmsNorm::Gather(const float* x, int64_t x_stride, std::span<const int32_t> rows,
                     Compute* compute, Activations* out) const {
  Run([&](int32_t i) { return x + rows[i] * x_stride; }, static_cast<int32_t>(rows.size()), compute,
      out);
}

void RmsNorm::AddNormed(float* y, int64_t stride, int32_t rows, Compute* compute, float* x) const {
  const auto& elementwise = compute->kernels().elementwise;
  const int32_t n = static_cast<int32_t>(weight_.size());
  ForRows(compute, rows, kRowsWorthSharing, [&](int32_t first, int32_t last) {
    for (int32_t i = first; i < last; ++i) {
      float* row = y + i * stride;
      elementwise.rms_norm(row, weight_.data(), eps_, n, row);
      elementwise.add(row, n, x + i * stride);
    }
  });
}

}  // namespace lockstep
