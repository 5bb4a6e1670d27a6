#include "crooked_kernel.h"

namespace lockstep {
namespace {

const kernels::KernelTable& Honest() { return *kernels::SupportedTables().front(); }

// Multiplies one row as it should, several with their sums over K cut in two: the kind of tuning by
// row count that makes an answer depend on its neighbours.
void SplitWhenSeveral(const kernels::PackedMatrix& w, const float* x, int64_t x_stride,
                      const kernels::GemmRange& range, const kernels::GemmEpilogue& epilogue,
                      float* out, int64_t out_stride, void* scratch) {
  Honest().gemm.gemm_float(w, x, x_stride, range, epilogue, out, out_stride, scratch);
  if (range.row_end - range.row_begin == 1) return;
  for (int32_t t = range.row_begin; t < range.row_end; ++t) {
    for (int32_t n = range.panel_begin * kernels::kPanel; n < range.panel_end * kernels::kPanel;
         ++n) {
      float& y = out[t * out_stride + n];
      y = (y + 1.0f) - 1.0f;  // a rounding that one row alone does not have
    }
  }
}

}  // namespace

kernels::KernelTable CrookedTable() {
  kernels::KernelTable crooked = Honest();
  crooked.gemm.gemm_float = SplitWhenSeveral;
  return crooked;
}

}  // namespace lockstep
