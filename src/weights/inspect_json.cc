#include "weights/inspect_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "weights/byte_cursor.h"
#include "weights/gguf_parse.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// A float in its shortest digits: 1e-05, where the nearest double would print as 9.99999...e-06.
Json ShortNumber(float value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  return std::strtod(fmt::format("{}", value).c_str(), nullptr);
}

Json ShortString(std::string_view text, const InspectOptions& options) {
  if (text.size() <= options.max_string) return std::string(text);
  return {{"bytes", text.size()}, {"first", std::string(text.substr(0, options.max_string))}};
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
      return cursor.ReadString(text) ? ShortString(text, options) : Json();
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

Json EntryValue(const GgufEntry& entry, const InspectOptions& options) {
  if (entry.type == GgufType::kString) {
    return ShortString({reinterpret_cast<const char*>(entry.raw.data()), entry.raw.size()},
                       options);
  }
  ByteCursor cursor(entry.raw);
  if (entry.type == GgufType::kArray) {
    return ShortArray(cursor, entry.element_type, entry.count, options);
  }
  return ReadValue(cursor, entry.type, options);
}

// A config with its long arrays and strings shortened.
Json Shortened(const Json& value, const InspectOptions& options) {
  if (value.is_string()) return ShortString(value.get_ref<const std::string&>(), options);
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return fmt::format("{}", value.get<double>());
  }
  if (value.is_object()) {
    Json out = Json::object();
    for (const auto& item : value.items()) out[item.key()] = Shortened(item.value(), options);
    return out;
  }
  if (!value.is_array()) return value;
  Json first = Json::array();
  for (size_t i = 0; i < std::min(value.size(), options.max_array); ++i) {
    first.push_back(Shortened(value[i], options));
  }
  if (value.size() <= options.max_array) return first;
  return {{"count", value.size()}, {"first", std::move(first)}};
}

struct Total {
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
  void Add(const TensorView& tensor) {
    ++tensors;
    elements += static_cast<uint64_t>(tensor.elements());
    bytes += tensor.data.size();
  }
  Json ToJson() const { return {{"tensors", tensors}, {"elements", elements}, {"bytes", bytes}}; }
};

Json Totals(const Checkpoint& checkpoint) {
  Total all;
  std::map<std::string_view, Total> by_dtype;
  for (const TensorView& tensor : checkpoint.tensors()) {
    all.Add(tensor);
    by_dtype[DTypeName(tensor.dtype)].Add(tensor);
  }
  Json out = all.ToJson();
  Json types = Json::object();
  for (const auto& [name, total] : by_dtype) types[std::string(name)] = total.ToJson();
  out["by_dtype"] = std::move(types);
  return out;
}

}  // namespace

Json InspectDocument(const Checkpoint& checkpoint, const InspectOptions& options) {
  Json out = {{"path", checkpoint.path()}, {"kind", CheckpointKindName(checkpoint.kind())}};
  Json files = Json::array();
  if (const GgufFile* gguf = checkpoint.gguf()) {
    out["version"] = gguf->version();
    out["alignment"] = gguf->alignment();
    for (const MappedFile& part : gguf->parts()) files.push_back(part.path());
    Json metadata = Json::object();
    for (const GgufEntry& entry : gguf->metadata().entries()) {
      metadata[std::string(entry.key)] = {{"type", entry.TypeText()},
                                          {"value", EntryValue(entry, options)}};
    }
    out["metadata"] = std::move(metadata);
  }
  Json metadata = Json::object();
  for (const auto& shard : checkpoint.safetensors()) {
    files.push_back(shard->path());
    for (const auto& [key, value] : shard->metadata()) metadata[key] = ShortString(value, options);
  }
  if (!checkpoint.safetensors().empty()) out["metadata"] = std::move(metadata);
  out["files"] = std::move(files);
  if (const HfConfig* config = checkpoint.config()) {
    out["config"] = Shortened(config->json(), options);
  }
  if (options.list_tensors) {
    Json tensors = Json::array();
    for (const TensorView& tensor : checkpoint.tensors()) {
      tensors.push_back({{"name", tensor.name},
                         {"dtype", DTypeName(tensor.dtype)},
                         {"shape", tensor.shape},
                         {"bytes", tensor.data.size()}});
    }
    out["tensors"] = std::move(tensors);
  }
  out["totals"] = Totals(checkpoint);
  return out;
}

}  // namespace lockstep
