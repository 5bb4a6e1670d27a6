#if defined(__x86_64__)

#include <immintrin.h>

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
#pragma GCC target("avx2,fma,f16c,avxvnni")

namespace lockstep::kernels::avxvnni {
namespace {

#include "kernels/isa/avx2/vec-inl.h"

#include "kernels/isa/avx2/gemm_words-inl.h"

#include "kernels/isa/avxvnni/gemm_dots-inl.h"

#include "kernels/generic/gemm_store-inl.h"

#include "kernels/generic/gemm_int-inl.h"

#include "kernels/generic/gemm_float-inl.h"

#include "kernels/generic/gemm_quantize-inl.h"

}  // namespace
}  // namespace lockstep::kernels::avxvnni

#pragma GCC pop_options

namespace lockstep::kernels::avxvnni {

GemmKernels Gemm() { return {Quantize, GemmInt, GemmFloat}; }

}  // namespace lockstep::kernels::avxvnni

#endif
