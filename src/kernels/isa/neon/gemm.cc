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
#pragma GCC target("arch=armv8.2-a+dotprod")

namespace lockstep::kernels::neon {
namespace {

#include "kernels/isa/neon/vec-inl.h"

#include "kernels/isa/neon/gemm_words-inl.h"

#include "kernels/isa/neon/gemm_packed_dots-inl.h"

#include "kernels/isa/neon/gemm_dots-inl.h"

#include "kernels/generic/gemm_store-inl.h"

#include "kernels/generic/gemm_int-inl.h"

#include "kernels/generic/gemm_float-inl.h"

#include "kernels/generic/gemm_quantize-inl.h"

}  // namespace
}  // namespace lockstep::kernels::neon

#pragma GCC pop_options

namespace lockstep::kernels::neon {

GemmKernels Gemm() { return {Quantize, GemmInt, GemmFloat}; }

}  // namespace lockstep::kernels::neon

#endif
