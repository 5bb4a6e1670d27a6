// The `messages` of a chat request, checked and brought to the one form that chat templates know:
// content is a string, tool call arguments are objects. Thread-safe.
#pragma once

#include <string>

#include "api/json.h"
#include "base/status.h"

namespace lockstep {

// Errors: kInvalidArgument or kUnimplemented naming the path, as "messages[2].content[0].text".
Result<Json> ReadMessages(const Json& body);

// The arguments of a call as templates take them, which index them as an object; the API sends them
// as JSON text. A model may have written what is no JSON, and its client sends it back: that stays
// text. Null: no arguments.
Result<Json> ReadCallArguments(const Json* arguments, const std::string& path);

}  // namespace lockstep
