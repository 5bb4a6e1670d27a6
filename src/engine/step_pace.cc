#include "engine/step_pace.h"

#include <algorithm>

#include "base/check.h"

namespace lockstep {
namespace {

constexpr int32_t kFirstGuess = 32;  // tokens, before anything is known
constexpr int32_t kLeast = 8;        // fewer cost nearly as much, weights are read once a step

// Follows within a few steps, and forgets a step that others on the machine held up.
void Smooth(double seconds, double* mean) {
  *mean = *mean > 0 ? 0.5 * (*mean + std::min(seconds, 4 * *mean)) : seconds;
}

}  // namespace

StepPace::StepPace(double budget_seconds, int32_t step_tokens)
    : budget_(budget_seconds), step_tokens_(step_tokens) {
  LOCKSTEP_CHECK(step_tokens >= 1);
}

int32_t StepPace::PromptTokens() const {
  if (budget_ <= 0) return step_tokens_;
  int32_t tokens = kFirstGuess;
  if (prompt_token_ > 0) {
    const double left = std::max(budget_, 2 * decode_) - decode_;
    tokens = static_cast<int32_t>(std::min<double>(left / prompt_token_, step_tokens_));
  }
  return std::min(std::max(tokens, kLeast), step_tokens_);
}

void StepPace::Observe(int32_t decoding, int32_t prompt_tokens, double seconds) {
  if (prompt_tokens == 0) {
    if (decoding > 0) Smooth(seconds, &decode_);
    return;
  }
  const double decode = decoding > 0 ? decode_ : 0;
  // A step faster than those that only decode says that a token costs next to nothing.
  Smooth(std::max(seconds - decode, 0.01 * seconds) / prompt_tokens, &prompt_token_);
}

}  // namespace lockstep
