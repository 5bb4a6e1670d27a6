#if defined(__x86_64__)

#include "kernels/isa/tables.h"

namespace lockstep::kernels {

// Only integer dots gain from AVX-VNNI.
const KernelTable& AvxVnniTable() {
  static const KernelTable table{"avxvnni", avxvnni::Gemm(), avx2::Elementwise(), avx2::Attention(),
                                 avx2::Recurrent()};
  return table;
}

}  // namespace lockstep::kernels

#endif
