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

}  // namespace

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
  // Without max_tokens there has to be room for one token at least.
  const int64_t wanted = request.max_tokens >= 0 ? request.max_tokens : 1;
  if (prompt + wanted > limits.max_context) {
    return Status(StatusCode::kContextLength,
                  fmt::format("the context holds {} tokens; the prompt has {} and {} are asked for",
                              limits.max_context, prompt, wanted),
                  prompt + 1 > limits.max_context ? "prompt" : "max_tokens");
  }
  if (prompt + wanted > limits.cache_tokens) {
    return ResourceExhausted(
        fmt::format("the KV cache holds {} tokens; the prompt has {} and {} are asked for",
                    limits.cache_tokens, prompt, wanted),
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
