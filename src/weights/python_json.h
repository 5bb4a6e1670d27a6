// ParsePythonJson: JSON as Python's json module writes and reads it: NaN, Infinity and -Infinity
// are numbers, and of a repeated key the last counts. For the small configs of HF folders. Pure;
// thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/status.h"

namespace lockstep {

inline constexpr int kMaxJsonDepth = 64;

// Errors: kDataLoss with the position, for text that is not JSON or nests too deep.
Result<nlohmann::json> ParsePythonJson(std::string_view text);

}  // namespace lockstep
