// Prompts of random tokens for the tiny checkpoints, all of which have that many tokens at least.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/types.h"

namespace lockstep {

inline std::vector<TokenId> RandomTokens(int32_t count, uint64_t seed) {
  constexpr int32_t kVocabSize = 256;
  std::mt19937_64 random(seed);
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(random() % kVocabSize));
  }
  return tokens;
}

}  // namespace lockstep
