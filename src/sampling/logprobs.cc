#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>

#include "sampling/best_tokens.h"

namespace lockstep {

LogNormalizer Normalize(const kernels::ElementwiseKernels& kernels, std::span<const float> logits) {
  const int32_t n = static_cast<int32_t>(logits.size());
  const float max = kernels.max(logits.data(), n).value;
  return {max, kernels::Log(kernels.sum_exp(logits.data(), max, n))};
}

Status LogitsNotFinite() { return Internal("the model's logits are not finite"); }

Status FillLogprobs(const LogNormalizer& normalizer, std::span<const float> logits, TokenId token,
                    int32_t top, PositionLogprobs* out) {
  if (!std::isfinite(normalizer.max)) return LogitsNotFinite();
  out->token = token;
  out->logprob = token >= 0 ? normalizer(logits[token]) : 0.0f;
  out->top.clear();
  if (!std::isfinite(out->logprob)) return LogitsNotFinite();
  if (top <= 0) return OkStatus();
  BestTokens(logits, top, &out->top);
  for (TokenLogprob& entry : out->top) entry.logprob = normalizer(entry.logprob);
  return std::isfinite(out->top.back().logprob) ? OkStatus() : LogitsNotFinite();
}

}  // namespace lockstep
