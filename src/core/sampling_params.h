// What a request asks of the sampler. Plain data; validated once at the edge (ValidateSampling in
// api/), immutable afterwards. The order in which the parts apply and each formula:
// docs/sampling.md.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/types.h"

namespace lockstep {

struct SamplingParams {
  float temperature = 1.0f;         // >= 0; 0 (and anything below 1e-5) is argmax
  int32_t top_k = 0;                // 0: off; larger than the vocabulary: off
  float top_p = 1.0f;               // [0, 1]; 1: off; 0: the best token alone
  float min_p = 0.0f;               // [0, 1]; 0: off; relative to the best token's probability
  float repetition_penalty = 1.0f;  // > 0; over prompt and output, each token once
  float presence_penalty = 0.0f;    // [-2, 2]; over the output, each token once
  float frequency_penalty = 0.0f;   // [-2, 2]; over the output, times the count
  uint64_t seed = 0;    // always set: a request without one draws its own when submitted
  uint64_t stream = 0;  // choice index: n choices of one seed draw differently
  std::vector<std::pair<TokenId, float>> logit_bias;  // ascending ids, each within the vocabulary

  // Log-probabilities of the raw distribution: -1 none, 0 the chosen token's alone, k also the k
  // best.
  int32_t logprobs = -1;
};

}  // namespace lockstep
