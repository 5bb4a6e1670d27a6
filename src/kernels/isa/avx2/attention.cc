#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "kernels/generic/attention_scratch.h"
#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

// Everything that is compiled for the instruction set is below; no header follows.
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace lockstep::kernels::avx2 {
namespace {

#include "kernels/generic/attention_elements-inl.h"

#include "kernels/isa/avx2/vec-inl.h"

#include "kernels/isa/avx2/attention_words-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/attention_softmax-inl.h"

#include "kernels/generic/attention_codecs-inl.h"

#include "kernels/generic/attention_tiles-inl.h"

#include "kernels/generic/attention-inl.h"

}  // namespace
}  // namespace lockstep::kernels::avx2

#pragma GCC pop_options

namespace lockstep::kernels::avx2 {

AttentionKernels Attention() { return {Append, Attend, AttendSplit, Fold}; }

}  // namespace lockstep::kernels::avx2

#endif
