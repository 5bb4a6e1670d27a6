#include "sampling/logprobs.h"

#include <algorithm>

#include "sampling/best_tokens.h"

namespace lockstep {

LogNormalizer Normalize(const kernels::ElementwiseKernels& kernels, std::span<const float> logits) {
  const int32_t n = static_cast<int32_t>(logits.size());
  const float max = kernels.max(logits.data(), n).value;
  return {max, kernels::Log(kernels.sum_exp(logits.data(), max, n))};
}

void FillLogprobs(const LogNormalizer& normalizer, std::span<const float> logits, TokenId token,
                  int32_t top, PositionLogprobs* out) {
  out->token = token;
  out->logprob = token >= 0 ? normalizer(logits[token]) : 0.0f;
  out->top.clear();
  if (top <= 0) return;
  BestTokens(logits, top, &out->top);
  for (TokenLogprob& entry : out->top) entry.logprob = normalizer(entry.logprob);
}

}  // namespace lockstep
