#include "model/layers/activations.h"

namespace lockstep {
namespace {

constexpr int32_t kRowsWorthSharing = 8;

}  // namespace

Result<Activations> Activations::Allocate(Arena* arena, int32_t rows, int32_t k, bool quantized) {
  Activations out;
  out.k = k;
  out.stride = PaddedOutputs(k);
  LOCKSTEP_ASSIGN_OR_RETURN(out.f32, arena->Take<float>(rows * out.stride, "activations"));
  if (quantized) {
    kernels::QuantizedRows& q = out.quantized;
    q.k = k;
    LOCKSTEP_ASSIGN_OR_RETURN(q.codes, arena->Take<int8_t>(size_t(rows) * k, "activations"));
    LOCKSTEP_ASSIGN_OR_RETURN(
        q.scales, arena->Take<float>(size_t(rows) * (k / kernels::kActGroup), "activations"));
    LOCKSTEP_ASSIGN_OR_RETURN(
        q.sums, arena->Take<int32_t>(size_t(rows) * (k / kernels::kActGroup), "activations"));
  }
  return out;
}

void Activations::Quantize(int32_t rows, Compute* compute) {
  if (quantized.codes == nullptr) return;
  ForRows(compute, rows, kRowsWorthSharing, [&](int32_t first, int32_t last) {
    compute->kernels().gemm.quantize(f32, stride, first, last, quantized);
  });
}

}  // namespace lockstep
