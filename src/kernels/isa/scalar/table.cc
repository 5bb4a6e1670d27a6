#include "kernels/isa/tables.h"

namespace lockstep::kernels {

const KernelTable& ScalarTable() {
  static const KernelTable table{"scalar", scalar::Gemm(), scalar::Elementwise(),
                                 scalar::Attention(), scalar::Recurrent()};
  return table;
}

}  // namespace lockstep::kernels
