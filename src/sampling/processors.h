// What changes a row's logits before a token is chosen: bias, penalties, bans and masks, in that
// order. Formulas: docs/sampling.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/step.h"

namespace lockstep {

// Token counts of one row, reused from row to row without clearing the whole vocabulary.
class TokenCounts {
 public:
  void Reset(int32_t vocab_size);
  void Add(TokenId id) {
    if (counts_[id]++ == 0) seen_.push_back(id);
  }
  int32_t Count(TokenId id) const { return counts_[id]; }
  std::span<const TokenId> seen() const { return seen_; }  // each once

 private:
  std::vector<int32_t> counts_;
  std::vector<TokenId> seen_;
};

// Applies everything that `row` asks to `logits` [vocab].
void ProcessLogits(const StepRow& row, TokenCounts* counts, std::span<float> logits);

}  // namespace lockstep
