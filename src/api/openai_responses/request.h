// The body of POST /v1/responses as a typed request: every field accepted and right, or refused by
// name (docs/http_api.md). Thread-safe.
#pragma once

#include <optional>
#include <string_view>

#include "api/endpoint.h"
#include "api/generation_fields.h"
#include "api/json.h"
#include "api/structured_output.h"
#include "api/tool_use.h"
#include "base/status.h"

namespace lockstep {

struct ResponsesRequest {
  GenerationFields fields;
  std::optional<StructuredOutput> structured;  // to be compiled once the prompt is known
  ToolUse tools;
  Json items;             // the whole conversation, that of `previous_response_id` included
  Json template_context;  // what the chat template renders
  Json head;              // the answer's members that repeat the request, in their order
  bool store = false;
};

// Errors: kNotFound for a response that is not there (any more), beside those of the fields.
Result<ResponsesRequest> ReadResponsesRequest(const ApiCall& call, const ServedModel& model);

// That there is no response of this name; `param` is the field that has it.
Status NoSuchResponse(std::string_view id, const char* param);

}  // namespace lockstep
