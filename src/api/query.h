// The query of a request's target: "limit=3&after=x". Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// "%41" to "A"; what is no such code stays.
std::string PercentDecode(std::string_view text);

// The value of the first parameter that has this name.
std::optional<std::string> QueryValue(std::string_view query, std::string_view name);

}  // namespace lockstep
