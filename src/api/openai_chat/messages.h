// The `messages` of a chat request, checked and brought to the one form that chat templates know:
// content is a string, tool call arguments are objects. Thread-safe.
#pragma once

#include "api/json.h"
#include "base/status.h"

namespace lockstep {

// Errors: kInvalidArgument or kUnimplemented naming the path, as "messages[2].content[0].text".
Result<Json> ReadMessages(const Json& body);

}  // namespace lockstep
