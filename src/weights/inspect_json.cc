#include "weights/inspect_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "weights/gguf_json.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Appends to an object without the look-up of operator[], which would make a long one quadratic.
// REQUIRES: `key` is not there yet.
void AppendUnique(Json& object, std::string key, Json value) {
  object.get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
}

// A config with its long arrays and strings shortened.
Json Shortened(const nlohmann::json& value, const InspectOptions& options) {
  if (value.is_string()) return ShortStringJson(value.get_ref<const std::string&>(), options);
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return fmt::format("{}", value.get<double>());
  }
  if (value.is_object()) {
    Json out = Json::object();
    for (const auto& item : value.items()) {
      AppendUnique(out, item.key(), Shortened(item.value(), options));
    }
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
    for (const MappedFile& part : gguf->parts()) files.push_back({{"path", part.path()}});
    Json metadata = Json::object();
    for (const GgufEntry& entry : gguf->metadata().entries()) {
      AppendUnique(metadata, std::string(entry.key),
                   {{"type", entry.TypeText()}, {"value", GgufValueJson(entry, options)}});
    }
    out["metadata"] = std::move(metadata);
  }
  for (const auto& shard : checkpoint.safetensors()) {
    Json metadata = Json::object();
    for (const auto& [key, value] : shard->metadata()) {
      AppendUnique(metadata, key, ShortStringJson(value, options));
    }
    files.push_back({{"path", shard->path()}, {"metadata", std::move(metadata)}});
  }
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
