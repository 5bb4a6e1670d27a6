#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "kernels/generic/gemm_layout.h"
#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

namespace lockstep::kernels::scalar {
namespace {

#include "kernels/isa/scalar/vec-inl.h"

#include "kernels/isa/scalar/gemm_words-inl.h"

#include "kernels/isa/scalar/gemm_dots-inl.h"

#include "kernels/generic/gemm_store-inl.h"

#include "kernels/generic/gemm_int-inl.h"

#include "kernels/generic/gemm_float-inl.h"

#include "kernels/generic/gemm_quantize-inl.h"

}  // namespace

GemmKernels Gemm() { return {Quantize, GemmInt, GemmFloat}; }

}  // namespace lockstep::kernels::scalar
