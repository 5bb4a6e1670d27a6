#include <bit>
#include <cstdint>

#include "base/half.h"
#include "kernels/generic/attention_scratch.h"
#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

namespace lockstep::kernels::scalar {
namespace {

#include "kernels/generic/attention_elements-inl.h"

#include "kernels/isa/scalar/vec-inl.h"

#include "kernels/isa/scalar/attention_words-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/attention_softmax-inl.h"

#include "kernels/generic/attention_codecs-inl.h"

#include "kernels/generic/attention_tiles-inl.h"

#include "kernels/generic/attention-inl.h"

}  // namespace

AttentionKernels Attention() { return {Append, Attend, AttendSplit, Fold}; }

}  // namespace lockstep::kernels::scalar
