#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

// Everything that is compiled for the instruction set is below; no header follows.
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace lockstep::kernels::avx2 {
namespace {

#include "kernels/isa/avx2/vec-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/elementwise-inl.h"

}  // namespace
}  // namespace lockstep::kernels::avx2

#pragma GCC pop_options

namespace lockstep::kernels::avx2 {

ElementwiseKernels Elementwise() {
  return {RmsNorm, SiluMul, Rope, AddTo, Scale, MaxElement, SumExp, ExpOf, GeluMul, SigmoidMul};
}

}  // namespace lockstep::kernels::avx2

#endif
