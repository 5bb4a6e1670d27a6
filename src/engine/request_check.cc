#include "engine/request_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

Status CheckTokens(const std::vector<TokenId>& ids, int32_t vocab_size, const char* field) {
  for (const TokenId id : ids) {
    if (id < 0 || id >= vocab_size) {
      return InvalidArgument(
          fmt::format("{}: token id {} is outside the vocabulary of {}", field, id, vocab_size),
          field);
    }
  }
  return OkStatus();
}

// "the prompt has 9 tokens and 1 more is asked for".
std::string Sizes(int64_t prompt, bool at_least, int64_t wanted) {
  return fmt::format("the prompt has {}{} token{} and {} more {} asked for",
                     at_least ? "at least " : "", prompt, prompt == 1 ? "" : "s", wanted,
                     wanted == 1 ? "is" : "are");
}

// Without max_tokens there has to be room for one token at least.
int64_t Wanted(int32_t max_tokens) { return max_tokens >= 0 ? max_tokens : 1; }

}  // namespace

Status CheckContext(const ContextUse& use) {
  const int64_t wanted = Wanted(use.max_tokens);
  if (use.prompt_tokens + wanted <= use.max_context) return OkStatus();
  return Status(StatusCode::kContextLength,
                fmt::format("this model's maximum context length is {} tokens; {}", use.max_context,
                            Sizes(use.prompt_tokens, use.at_least, wanted)),
                use.prompt_tokens + 1 > use.max_context ? use.prompt_param : use.max_tokens_param);
}

Result<int32_t> CheckRequest(const GenerationRequest& request, const RequestLimits& limits) {
  if (request.prompt.empty()) return InvalidArgument("the prompt has no tokens", "prompt");
  LOCKSTEP_RETURN_IF_ERROR(CheckTokens(request.prompt, limits.vocab_size, "prompt"));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckTokens(request.stop_token_ids, limits.vocab_size, "stop_token_ids"));
  for (const auto& [id, bias] : request.sampling.logit_bias) {
    if (id < 0 || id >= limits.vocab_size) {
      return InvalidArgument(fmt::format("logit_bias: token id {} is outside the vocabulary of {}",
                                         id, limits.vocab_size),
                             "logit_bias");
    }
  }
  if (request.max_tokens < -1) {
    return InvalidArgument("max_tokens must be at least 0", "max_tokens");
  }
  if (request.min_tokens < 0) {
    return InvalidArgument("min_tokens must be at least 0", "min_tokens");
  }
  if (request.max_tokens >= 0 && request.min_tokens > request.max_tokens) {
    return InvalidArgument(fmt::format("min_tokens {} is larger than max_tokens {}",
                                       request.min_tokens, request.max_tokens),
                           "min_tokens");
  }

  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t wanted = Wanted(request.max_tokens);
  LOCKSTEP_RETURN_IF_ERROR(CheckContext({.prompt_tokens = prompt,
                                         .max_tokens = request.max_tokens,
                                         .max_context = limits.max_context}));
  if (prompt + wanted > limits.cache_tokens) {
    return ResourceExhausted(fmt::format("the whole KV cache holds {} tokens; {}",
                                         limits.cache_tokens, Sizes(prompt, false, wanted)),
                             prompt + 1 > limits.cache_tokens ? "prompt" : "max_tokens");
  }
  if (request.max_tokens >= 0) return request.max_tokens;
  const auto room =
      static_cast<int32_t>(std::min(limits.max_context, limits.cache_tokens) - prompt);
  if (request.min_tokens > room) {
    return InvalidArgument(fmt::format("min_tokens {} is more than the {} tokens there is room for",
                                       request.min_tokens, room),
                           "min_tokens");
  }
  return room;
}

}  // namespace lockstep
