// What the endpoints say of themselves: the openapi.json of each folder, built into the program.
// The first is what they share. Thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace lockstep {

std::span<const std::string_view> OpenApiDocuments();

}  // namespace lockstep
