#if defined(__aarch64__)

#include "kernels/isa/tables.h"

namespace lockstep::kernels {

const KernelTable& NeonTable() {
  static const KernelTable table{"neon", neon::Gemm(), neon::Elementwise(), neon::Attention(),
                                 neon::Recurrent()};
  return table;
}

}  // namespace lockstep::kernels

#endif
