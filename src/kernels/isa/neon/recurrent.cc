#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>

#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

// Everything that is compiled for the instruction set is below; no header follows.
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")

namespace lockstep::kernels::neon {
namespace {

#include "kernels/isa/neon/vec-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/recurrent-inl.h"

}  // namespace
}  // namespace lockstep::kernels::neon

#pragma GCC pop_options

namespace lockstep::kernels::neon {

RecurrentKernels Recurrent() { return {ShortConv, DeltaRule}; }

}  // namespace lockstep::kernels::neon

#endif
