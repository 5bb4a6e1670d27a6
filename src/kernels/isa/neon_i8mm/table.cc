#if defined(__aarch64__)

#include "kernels/isa/tables.h"

namespace lockstep::kernels {

// Only products of many rows gain from i8mm.
const KernelTable& NeonI8mmTable() {
  static const KernelTable table{"neon_i8mm", neon_i8mm::Gemm(), neon::Elementwise(),
                                 neon::Attention(), neon::Recurrent()};
  return table;
}

}  // namespace lockstep::kernels

#endif
