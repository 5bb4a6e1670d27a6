// Typed reading of the members of a request body. An absent or null member leaves `out` as it is;
// one of a wrong type or out of its range is kInvalidArgument naming it. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/status.h"
#include "core/types.h"

namespace lockstep {

// "a string", "an array": for messages.
std::string_view JsonKind(const Json& value);

Status Missing(const std::string& path);
Status WrongType(std::string_view path, std::string_view expected, const Json& value);

Status ReadBool(const Json& object, std::string_view name, bool* out);
Status ReadString(const Json& object, std::string_view name, std::string* out);

// Takes 3 and 3.0, not 3.5. The bounds are inclusive.
Status ReadInt(const Json& object, std::string_view name, int64_t low, int64_t high, int64_t* out);
Status ReadInt32(const Json& object, std::string_view name, int32_t low, int32_t high,
                 int32_t* out);
// `value` itself as an integer; `path` names it in messages.
Result<int64_t> AsInt(const Json& value, std::string_view path, int64_t low, int64_t high);

// The bounds are inclusive.
Status ReadFloat(const Json& object, std::string_view name, double low, double high, float* out);

// `value` as an array of token ids below `vocab_size`. Errors name the item: "prompt[3]".
Result<std::vector<TokenId>> AsTokens(const Json& value, std::string_view path, int32_t vocab_size);

}  // namespace lockstep
