// `system`, `messages`, `tools` and `tool_choice` of Anthropic's Messages API, brought to the form
// that chat templates know. Thread-safe.
#pragma once

#include "api/json.h"
#include "api/tool_use.h"
#include "base/status.h"

namespace lockstep {

// Errors: kInvalidArgument or kUnimplemented naming the path, as "messages.2.content.0.text".
Result<Json> ReadAnthropicMessages(const Json& body);

// Errors as above.
Result<ToolUse> ReadAnthropicTools(const Json& body);

}  // namespace lockstep
