#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>

#include "kernels/generic/attention_scratch.h"
#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

// Everything that is compiled for the instruction set is below; no header follows.
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")

namespace lockstep::kernels::neon {
namespace {

#include "kernels/generic/attention_elements-inl.h"

#include "kernels/isa/neon/vec-inl.h"

#include "kernels/isa/neon/attention_words-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/attention_softmax-inl.h"

#include "kernels/generic/attention_codecs-inl.h"

#include "kernels/generic/attention_tiles-inl.h"

#include "kernels/generic/attention-inl.h"

}  // namespace
}  // namespace lockstep::kernels::neon

#pragma GCC pop_options

namespace lockstep::kernels::neon {

AttentionKernels Attention() { return {Append, Attend, AttendSplit, Fold}; }

}  // namespace lockstep::kernels::neon

#endif
