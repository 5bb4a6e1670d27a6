// The conversation of a responses request as items, in the one form that is stored and listed:
// every item has an id, content is a list of parts. Thread-safe.
#pragma once

#include <string_view>

#include "api/json.h"
#include "base/status.h"

namespace lockstep {

// `input` of the body as an array of items; those that come without an id get one made of `unique`.
// Errors: kInvalidArgument or kUnimplemented naming the path, as "input[2].content[0].text".
Result<Json> ReadInputItems(const Json& body, std::string_view unique);

// Items, an earlier answer's output among them, as the messages that chat templates know.
// Reasoning, text and calls that follow each other are one message of the assistant. Errors:
// kInvalidArgument for a function's output without its call.
Result<Json> MessagesOfItems(const Json& items);

}  // namespace lockstep
