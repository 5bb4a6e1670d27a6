#include <bit>
#include <cstdint>

#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

namespace lockstep::kernels::scalar {
namespace {

#include "kernels/isa/scalar/vec-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/recurrent-inl.h"

}  // namespace

RecurrentKernels Recurrent() { return {ShortConv, DeltaRule}; }

}  // namespace lockstep::kernels::scalar
