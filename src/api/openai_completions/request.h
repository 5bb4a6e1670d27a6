// The body of POST /v1/completions as a typed request: every field accepted and right, or refused
// by name (docs/http_api.md). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/generation_fields.h"
#include "api/json.h"
#include "base/status.h"

namespace lockstep {

// Prompts of one request times the choices of each.
inline constexpr size_t kMaxCompletionRows = 512;

struct CompletionPrompt {
  std::vector<TokenId> tokens;
  bool from_text = false;
};

struct CompletionRequest {
  GenerationFields fields;
  std::vector<CompletionPrompt> prompts;  // at least one, none empty
  int32_t best_of = 1;                    // >= fields.n
  int32_t logprobs = -1;                  // -1: none
  bool echo = false;
};

// `client_gone` as in ApiCall: asked before each prompt is tokenised.
Result<CompletionRequest> ReadCompletionRequest(std::string_view body, const ServedModel& model,
                                                const std::atomic<bool>* client_gone = nullptr);

}  // namespace lockstep
