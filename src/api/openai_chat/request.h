// The body of POST /v1/chat/completions as a typed request: every field accepted and right, or
// refused by name (docs/http_api.md). Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/generation_fields.h"
#include "api/json.h"
#include "api/structured_output.h"
#include "api/tool_use.h"
#include "base/status.h"

namespace lockstep {

struct ChatRequest {
  GenerationFields fields;
  std::optional<StructuredOutput> structured;  // to be compiled once the prompt is known
  ToolUse tools;
  Json template_context;      // what the chat template renders: messages, tools, ...
  int32_t top_logprobs = -1;  // -1: no log-probabilities
  const char* max_tokens_name = "max_tokens";  // the field that the request used
};

Result<ChatRequest> ReadChatRequest(std::string_view body, const ServedModel& model);

}  // namespace lockstep
