// Requests of every kind, drawn at random: what the promise of same bytes is shown with, by
// `lockstep verify` and by the invariance tests. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request.h"

namespace lockstep {

// `count` requests over a vocabulary, the same for the same arguments, of 1 to `longest_prompt`
// tokens each. Some have stop strings, some are further choices of the request before them. No
// sinks.
std::vector<GenerationRequest> MixedRequests(int32_t count, int32_t vocab_size,
                                             int32_t longest_prompt, uint64_t seed);

}  // namespace lockstep
