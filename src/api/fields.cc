#include "api/fields.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep {

std::string_view JsonKind(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    default:
      return "a number";
  }
}

Status Missing(const std::string& path) {
  return InvalidArgument(fmt::format("'{}' is required", path), path);
}

Status WrongType(std::string_view path, std::string_view expected, const Json& value) {
  return InvalidArgument(fmt::format("'{}' must be {}, not {}", path, expected, JsonKind(value)),
                         std::string(path));
}

Status ReadBool(const Json& object, std::string_view name, bool* out) {
  const Json* value = FindField(object, name);
  if (value == nullptr) return OkStatus();
  if (!value->is_boolean()) return WrongType(name, "a boolean", *value);
  *out = value->get<bool>();
  return OkStatus();
}

Status ReadString(const Json& object, std::string_view name, std::string* out) {
  const Json* value = FindField(object, name);
  if (value == nullptr) return OkStatus();
  if (!value->is_string()) return WrongType(name, "a string", *value);
  *out = value->get_ref<const std::string&>();
  return OkStatus();
}

Result<int64_t> AsInt(const Json& value, std::string_view path, int64_t low, int64_t high) {
  if (!value.is_number()) return WrongType(path, "an integer", value);
  int64_t integer = 0;
  bool in_range = true;
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    in_range = number <= static_cast<uint64_t>(INT64_MAX);
    if (in_range) integer = static_cast<int64_t>(number);
  } else if (value.is_number_integer()) {
    integer = value.get<int64_t>();
  } else {
    const double number = value.get<double>();
    if (number != std::floor(number)) {
      return InvalidArgument(fmt::format("'{}' must be an integer, not {}", path, number),
                             std::string(path));
    }
    // Doubles beyond 2^53 no longer stand for one integer.
    in_range = std::abs(number) <= 9007199254740992.0;
    if (in_range) integer = static_cast<int64_t>(number);
  }
  if (!in_range || integer < low || integer > high) {
    return InvalidArgument(fmt::format("'{}' must be between {} and {}", path, low, high),
                           std::string(path));
  }
  return integer;
}

Status ReadInt(const Json& object, std::string_view name, int64_t low, int64_t high, int64_t* out) {
  const Json* value = FindField(object, name);
  if (value == nullptr) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(*out, AsInt(*value, name, low, high));
  return OkStatus();
}

Status ReadInt32(const Json& object, std::string_view name, int32_t low, int32_t high,
                 int32_t* out) {
  int64_t wide = *out;
  LOCKSTEP_RETURN_IF_ERROR(ReadInt(object, name, low, high, &wide));
  *out = static_cast<int32_t>(wide);
  return OkStatus();
}

Status ReadFloat(const Json& object, std::string_view name, double low, double high, float* out) {
  const Json* value = FindField(object, name);
  if (value == nullptr) return OkStatus();
  if (!value->is_number()) return WrongType(name, "a number", *value);
  const double number = value->get<double>();
  if (!(number >= low && number <= high)) {
    return InvalidArgument(fmt::format("'{}' must be between {} and {}", name, low, high),
                           std::string(name));
  }
  *out = static_cast<float>(number);
  return OkStatus();
}

Result<std::vector<TokenId>> AsTokens(const Json& value, std::string_view path,
                                      int32_t vocab_size) {
  if (!value.is_array()) return WrongType(path, "an array of token ids", value);
  std::vector<TokenId> tokens;
  tokens.reserve(value.size());
  for (const Json& item : value) {
    // The path of an item is built only for its message: an array may hold millions.
    Result<int64_t> id = AsInt(item, path, 0, vocab_size - 1);
    if (!id.ok()) {
      std::string at = fmt::format("{}[{}]", path, tokens.size());
      return InvalidArgument(
          fmt::format("'{}' must be a token id between 0 and {}", at, vocab_size - 1), at);
    }
    tokens.push_back(static_cast<TokenId>(*id));
  }
  return tokens;
}

}  // namespace lockstep
