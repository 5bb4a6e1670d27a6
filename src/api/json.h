// Reading JSON that strangers sent: RFC 8259 and nothing beside it. Refused: a byte order mark,
// duplicate keys, lone surrogates, ill-formed UTF-8, NaN and infinities, numbers that no double
// holds, nesting deeper than kMaxJsonDepth. Objects keep their order. Thread-safe.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace lockstep {

using Json = nlohmann::ordered_json;

inline constexpr size_t kMaxJsonDepth = 128;

// Errors: kInvalidArgument, with the byte offset or the key at fault. `malformed`, when given, is
// set to whether the text is no JSON at all, as opposed to JSON that is refused here.
Result<Json> ParseJson(std::string_view text, bool* malformed = nullptr);

// As ParseJson, and the document must be an object: what every request body is.
Result<Json> ParseJsonObject(std::string_view text);

// Compact; ill-formed UTF-8 becomes U+FFFD, so that it never fails.
std::string DumpJson(const Json& value);

// The object's member, or null when it is absent or null: the API treats both alike.
const Json* FindField(const Json& object, std::string_view name);

}  // namespace lockstep
