// What a chat template renders: the conversation, the tools, and the fields of a request that go to
// the template as they are. Thread-safe.
#pragma once

#include "api/json.h"
#include "api/tool_use.h"
#include "base/status.h"

namespace lockstep {

// `messages`: in the form that templates know. Read from `body`: add_generation_prompt,
// reasoning_effort and chat_template_kwargs. Errors: kInvalidArgument naming the field.
Result<Json> ReadTemplateContext(const Json& body, Json messages, const ToolUse& use);

}  // namespace lockstep
