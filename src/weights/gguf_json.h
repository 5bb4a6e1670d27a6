// GGUF metadata values as JSON, long ones shortened as inspect.h says. Pure; thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "weights/gguf_metadata.h"
#include "weights/inspect.h"

namespace lockstep {

nlohmann::ordered_json GgufValueJson(const GgufEntry& entry, const InspectOptions& options);
// The string, or {"bytes", "first"} of a long one.
nlohmann::ordered_json ShortStringJson(std::string_view text, const InspectOptions& options);

}  // namespace lockstep
