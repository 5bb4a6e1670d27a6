// The id that a tool call gets. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/answer_format.h"

namespace lockstep {

// Its own within the answer, whose own part of ids is `unique`, and of the shape that the model's
// template takes back.
std::string CallId(ToolFormat format, std::string_view unique, size_t number);

}  // namespace lockstep
