#include "weights/gguf_json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "weights/byte_cursor.h"
#include "weights/gguf_parse.h"

namespace lockstep {

using Json = nlohmann::ordered_json;

Json ShortStringJson(std::string_view text, const InspectOptions& options) {
  if (text.size() <= options.max_string) return std::string(text);
  return {{"bytes", text.size()}, {"first", std::string(text.substr(0, options.max_string))}};
}

namespace {

// A float in its shortest digits: 1e-05, where the nearest double would print as 9.99999...e-06.
Json ShortNumber(float value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  return std::strtod(fmt::format("{}", value).c_str(), nullptr);
}

template <typename T>
bool ReadInto(ByteCursor& cursor, Json& out) {
  T value;
  if (!cursor.Read(value)) return false;
  if constexpr (std::is_same_v<T, float>) {
    out = ShortNumber(value);
  } else if constexpr (std::is_same_v<T, double>) {
    out = std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
  } else {
    out = value;
  }
  return true;
}

Json ShortArray(ByteCursor& cursor, GgufType type, uint64_t count, const InspectOptions& options);

// One value of `type` at the cursor; null when the file was written to since it was checked.
Json ReadValue(ByteCursor& cursor, GgufType type, const InspectOptions& options) {
  Json out;
  std::string_view text;
  uint32_t element = 0;
  uint64_t count = 0;
  uint8_t flag = 0;
  switch (type) {
    case GgufType::kU8:
      return ReadInto<uint8_t>(cursor, out) ? out : Json();
    case GgufType::kI8:
      return ReadInto<int8_t>(cursor, out) ? out : Json();
    case GgufType::kU16:
      return ReadInto<uint16_t>(cursor, out) ? out : Json();
    case GgufType::kI16:
      return ReadInto<int16_t>(cursor, out) ? out : Json();
    case GgufType::kU32:
      return ReadInto<uint32_t>(cursor, out) ? out : Json();
    case GgufType::kI32:
      return ReadInto<int32_t>(cursor, out) ? out : Json();
    case GgufType::kU64:
      return ReadInto<uint64_t>(cursor, out) ? out : Json();
    case GgufType::kI64:
      return ReadInto<int64_t>(cursor, out) ? out : Json();
    case GgufType::kF32:
      return ReadInto<float>(cursor, out) ? out : Json();
    case GgufType::kF64:
      return ReadInto<double>(cursor, out) ? out : Json();
    case GgufType::kBool:
      return cursor.Read(flag) ? Json(flag != 0) : Json();
    case GgufType::kString:
      return cursor.ReadString(text) ? ShortStringJson(text, options) : Json();
    case GgufType::kArray:
      if (!cursor.Read(element) || !cursor.Read(count) || element >= kGgufTypeCount) return Json();
      return ShortArray(cursor, static_cast<GgufType>(element), count, options);
  }
  return Json();
}

// All elements are read, because a nested array's end is known only by walking it.
Json ShortArray(ByteCursor& cursor, GgufType type, uint64_t count, const InspectOptions& options) {
  Json first = Json::array();
  std::span<const std::byte> skipped;
  const uint32_t scalar = GgufScalarBytes(type);
  for (uint64_t i = 0; i < count && cursor.remaining() > 0; ++i) {
    if (i < options.max_array) {
      first.push_back(ReadValue(cursor, type, options));
    } else if (scalar > 0) {
      if (!cursor.Take((count - i) * scalar, skipped)) break;
      break;
    } else {
      ReadValue(cursor, type, options);
    }
  }
  if (count <= options.max_array) return first;
  return {{"count", count}, {"first", std::move(first)}};
}

}  // namespace

Json GgufValueJson(const GgufEntry& entry, const InspectOptions& options) {
  if (entry.type == GgufType::kString) {
    return ShortStringJson({reinterpret_cast<const char*>(entry.raw.data()), entry.raw.size()},
                           options);
  }
  ByteCursor cursor(entry.raw);
  if (entry.type == GgufType::kArray) {
    return ShortArray(cursor, entry.element_type, entry.count, options);
  }
  return ReadValue(cursor, entry.type, options);
}

}  // namespace lockstep
