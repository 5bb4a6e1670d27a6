// Log-probabilities of one position from its raw logits: before bias, penalties, masks, truncation
// and temperature, at every setting. f32, with the kernels' fixed sums: the bits depend on the
// logits alone.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "core/step.h"
#include "kernels/kernels.h"

namespace lockstep {

// log-softmax of a row of logits as two numbers: logprob(t) = (logits[t] - max) - log_sum.
struct LogNormalizer {
  float max = 0.0f;
  float log_sum = 0.0f;
  float operator()(float logit) const { return (logit - max) - log_sum; }
};
// A NaN max when any logit is NaN.
LogNormalizer Normalize(const kernels::ElementwiseKernels& kernels, std::span<const float> logits);

// What a row fails with whose logits are NaN or infinite.
Status LogitsNotFinite();

// The log-probability of `token` (none when < 0) and of the `top` best tokens, best first, ties by
// the smaller id. Reuses out's memory. Errors: LogitsNotFinite when any logit is NaN or +infinity,
// or one that is asked for is -infinity.
Status FillLogprobs(const LogNormalizer& normalizer, std::span<const float> logits, TokenId token,
                    int32_t top, PositionLogprobs* out);

}  // namespace lockstep
