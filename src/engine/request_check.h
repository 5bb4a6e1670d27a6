// The checks of a request that need the model's and the cache's sizes; what the sampling fields may
// hold is api/'s to check. Pure; thread-safe.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/request.h"

namespace lockstep {

struct RequestLimits {
  int32_t vocab_size = 0;
  int32_t max_context = 0;   // tokens, prompt and output
  int32_t cache_tokens = 0;  // the most that the whole cache holds for one sequence
};

// How many tokens the request may generate: max_tokens, or the rest of the safe context
// (the smaller of max_context and cache_tokens) when it is -1. Errors: kInvalidArgument,
// kContextLength and kResourceExhausted, as Engine::Submit documents them.
Result<int32_t> CheckRequest(const GenerationRequest& request, const RequestLimits& limits);

}  // namespace lockstep
