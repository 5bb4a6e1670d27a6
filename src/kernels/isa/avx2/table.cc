#if defined(__x86_64__)

#include "kernels/isa/tables.h"

namespace lockstep::kernels {

const KernelTable& Avx2Table() {
  static const KernelTable table{"avx2", avx2::Gemm(), avx2::Elementwise(), avx2::Attention(),
                                 avx2::Recurrent()};
  return table;
}

}  // namespace lockstep::kernels

#endif
