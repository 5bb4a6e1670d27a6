// `tools`, `tool_choice` and `parallel_tool_calls` of the responses API, whose functions are not
// nested as those of chat completions are. Thread-safe.
#pragma once

#include "api/json.h"
#include "api/tool_use.h"
#include "base/status.h"

namespace lockstep {

// Errors: kInvalidArgument or kUnimplemented naming the field.
Result<ToolUse> ReadResponsesTools(const Json& body);

}  // namespace lockstep
