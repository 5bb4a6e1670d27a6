#include <bit>
#include <cstdint>

#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

namespace lockstep::kernels::scalar {
namespace {

#include "kernels/isa/scalar/vec-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/elementwise-inl.h"

}  // namespace

ElementwiseKernels Elementwise() {
  return {RmsNorm, SiluMul, Rope, AddTo, Scale, MaxElement, SumExp, ExpOf, GeluMul, SigmoidMul};
}

}  // namespace lockstep::kernels::scalar
