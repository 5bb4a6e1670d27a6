#if defined(__x86_64__)

#include "kernels/isa/tables.h"

namespace lockstep::kernels {

const KernelTable& Avx512Table() {
  static const KernelTable table{"avx512", avx512::Gemm(), avx512::Elementwise(),
                                 avx512::Attention(), avx512::Recurrent()};
  return table;
}

}  // namespace lockstep::kernels

#endif
