#if defined(__x86_64__)

// GCC's AVX-512 intrinsics pass registers whose value does not matter.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <cstdint>

#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

// Everything that is compiled for the instruction set is below; no header follows.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")

namespace lockstep::kernels::avx512 {
namespace {

#include "kernels/isa/avx512/vec-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/elementwise-inl.h"

}  // namespace
}  // namespace lockstep::kernels::avx512

#pragma GCC pop_options

namespace lockstep::kernels::avx512 {

ElementwiseKernels Elementwise() {
  return {RmsNorm, SiluMul, Rope, AddTo, Scale, MaxElement, SumExp, ExpOf, GeluMul, SigmoidMul};
}

}  // namespace lockstep::kernels::avx512

#endif
