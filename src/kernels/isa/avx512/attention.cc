#if defined(__x86_64__)

// GCC's AVX-512 intrinsics pass registers whose value does not matter.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <cstdint>

#include "kernels/generic/attention_scratch.h"
#include "kernels/generic/inline.h"
#include "kernels/isa/tables.h"

// Everything that is compiled for the instruction set is below; no header follows.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")

namespace lockstep::kernels::avx512 {
namespace {

#include "kernels/generic/attention_elements-inl.h"

#include "kernels/isa/avx512/vec-inl.h"

#include "kernels/isa/avx512/attention_words-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/attention_softmax-inl.h"

#include "kernels/generic/attention_codecs-inl.h"

#include "kernels/generic/attention_tiles-inl.h"

#include "kernels/generic/attention-inl.h"

}  // namespace
}  // namespace lockstep::kernels::avx512

#pragma GCC pop_options

namespace lockstep::kernels::avx512 {

AttentionKernels Attention() { return {Append, Attend, AttendSplit, Fold}; }

}  // namespace lockstep::kernels::avx512

#endif
