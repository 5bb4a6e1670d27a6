#if defined(__aarch64__)

#include <arm_neon.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/generic/gemm_layout.h"
#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

// Everything that is compiled for the instruction set is below; no header follows.
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod+i8mm")

namespace lockstep::kernels::neon_i8mm {
namespace {

#include "kernels/isa/neon/vec-inl.h"

#include "kernels/isa/neon/gemm_words-inl.h"

#include "kernels/isa/neon/gemm_packed_dots-inl.h"

#include "kernels/isa/neon_i8mm/gemm_dots-inl.h"

#include "kernels/generic/gemm_store-inl.h"

#include "kernels/generic/gemm_int-inl.h"

#include "kernels/generic/gemm_float-inl.h"

#include "kernels/generic/gemm_quantize-inl.h"

}  // namespace
}  // namespace lockstep::kernels::neon_i8mm

#pragma GCC pop_options

namespace lockstep::kernels::neon_i8mm {

GemmKernels Gemm() { return {Quantize, GemmInt, GemmFloat}; }

}  // namespace lockstep::kernels::neon_i8mm

#endif
