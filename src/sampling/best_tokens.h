// The largest of a row of logits, in a total order (larger first, ties by the smaller id), so that
// the answer is unique.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/step.h"

namespace lockstep {

inline bool Better(const TokenLogprob& a, const TokenLogprob& b) {
  return a.logprob > b.logprob || (a.logprob == b.logprob && a.id < b.id);
}

// Fills `best` with the min(count, logits.size()) best tokens in order; `logprob` holds the logit.
void BestTokens(std::span<const float> logits, int32_t count, std::vector<TokenLogprob>* best);

}  // namespace lockstep
