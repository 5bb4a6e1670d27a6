#include "kernels/gemm.h"
#include "kernels/generic/gemm_layout.h"

namespace lockstep::kernels {

size_t GemmScratchBytes(const PackedMatrix& w) {
  size_t bytes = kAccumulatorBytes + kUnpackedBytes;
  if (IsIntegerCode(w.code)) {
    bytes += 2 * CorrectionBytes(w) + sizeof(int16_t) * kRowBlock * static_cast<size_t>(w.k);
  }
  return bytes;
}

}  // namespace lockstep::kernels
