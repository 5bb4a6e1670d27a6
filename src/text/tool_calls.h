// Tool calls as models write them. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer_format.h"

namespace lockstep {

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object, as the model wrote it where it wrote JSON
};

// The calls in `text`: all that stands between the marks, or from the beginning mark on. Absent:
// it is no call, or not wholly one.
std::optional<std::vector<ToolCall>> ParseToolCalls(ToolFormat format, std::string_view text);

// The calls of an answer that is a Python list of calls with literals as keyword arguments.
std::optional<std::vector<ToolCall>> ParsePythonicCalls(std::string_view text);

}  // namespace lockstep
