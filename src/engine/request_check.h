// The checks of a request that need the model's and the cache's sizes; what the sampling fields may
// hold is api/'s to check. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "engine/request.h"

namespace lockstep {

struct RequestLimits {
  int32_t vocab_size = 0;
  int32_t max_context = 0;   // tokens, prompt and output
  int32_t cache_tokens = 0;  // the most that the whole cache holds for one sequence
};

// A prompt and its output against the context. All of the project says this in these words.
struct ContextUse {
  int64_t prompt_tokens = 0;
  bool at_least = false;    // the prompt may have more: it was not tokenised
  int32_t max_tokens = -1;  // as GenerationRequest::max_tokens
  int64_t max_context = 0;
  std::string prompt_param = "prompt";
  std::string max_tokens_param = "max_tokens";
};

// Errors: kContextLength naming the prompt's tokens and the limit; its param is the prompt's name,
// or that of max_tokens when the prompt alone would fit.
Status CheckContext(const ContextUse& use);

// How many tokens the request may generate: max_tokens, or the rest of the safe context
// (the smaller of max_context and cache_tokens) when it is -1. Errors: kInvalidArgument,
// kContextLength and kResourceExhausted, as Engine::Submit documents them.
Result<int32_t> CheckRequest(const GenerationRequest& request, const RequestLimits& limits);

}  // namespace lockstep
