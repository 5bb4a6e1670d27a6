// The body of POST /v1/messages, and of its count_tokens, as a typed request: every field accepted
// and right, or refused by name (docs/http_api.md). Thread-safe.
#pragma once

#include <string_view>

#include "api/generation_fields.h"
#include "api/json.h"
#include "api/tool_use.h"
#include "base/status.h"

namespace lockstep {

struct AnthropicRequest {
  GenerationFields fields;
  ToolUse tools;
  Json template_context;
};

// `counts`: of count_tokens, which needs no max_tokens.
Result<AnthropicRequest> ReadAnthropicRequest(std::string_view body, const ServedModel& model,
                                              bool counts);

}  // namespace lockstep
