#include "weights/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "weights/inspect_json.h"
#include "weights/printable.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string AsText(const Json& value) {
  if (value.is_string()) {
    return '"' + Printable(value.get_ref<const std::string&>(), std::string::npos) + '"';
  }
  if (value.is_array()) {
    std::string out;
    for (const Json& item : value) out += (out.empty() ? "" : ", ") + AsText(item);
    return "[" + out + "]";
  }
  if (!value.is_object()) return value.dump();
  if (value.contains("first") && value.contains("count") && value.size() == 2) {
    std::string list = AsText(value["first"]);
    list.insert(list.size() - 1, ", ...");
    return list;
  }
  if (value.contains("first") && value.contains("bytes") && value.size() == 2) {
    return fmt::format("{}... ({} bytes)", AsText(value["first"]), value["bytes"].dump());
  }
  std::string out;
  for (const auto& item : value.items()) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", Printable(item.key()),
                       AsText(item.value()));
  }
  return "{" + out + "}";
}

// "array of string [49152]" beside the key, so that a shortened value still says its length.
std::string TypeColumn(const Json& entry) {
  const Json& value = entry["value"];
  const std::string type = entry["type"].get<std::string>();
  if (value.is_array()) return fmt::format("{} [{}]", type, value.size());
  if (value.is_object() && value.contains("count")) {
    return fmt::format("{} [{}]", type, value["count"].dump());
  }
  return type;
}

void AppendTotal(std::string& out, std::string_view name, const Json& total) {
  const auto bytes = total["bytes"].get<uint64_t>();
  fmt::format_to(std::back_inserter(out),
                 "  {:<12} {:>6} tensors {:>15} elements {:>15} bytes ({:.1f} MiB)\n", name,
                 total["tensors"].get<uint64_t>(), total["elements"].get<uint64_t>(), bytes,
                 static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

std::string InspectText(const Checkpoint& checkpoint, const InspectOptions& options) {
  const Json document = InspectDocument(checkpoint, options);
  std::string out;
  const auto line = [&out]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    out += '\n';
  };
  line("{}", Printable(checkpoint.path(), std::string::npos));
  if (const GgufFile* gguf = checkpoint.gguf()) {
    line("format: GGUF version {}, alignment {}, little endian", gguf->version(),
         gguf->alignment());
  } else {
    line("format: {}", CheckpointKindName(checkpoint.kind()));
  }
  for (const Json& file : document["files"]) {
    // One file without metadata of its own is the path that was just printed.
    if (document["files"].size() == 1 && !file.contains("metadata")) break;
    line("\nfile: {}", Printable(file["path"].get_ref<const std::string&>(), std::string::npos));
    if (!file.contains("metadata")) continue;
    for (const auto& item : file["metadata"].items()) {
      line("  {:<42} {}", Printable(item.key()), AsText(item.value()));
    }
  }
  if (document.contains("metadata")) {
    line("\nmetadata: {} keys", document["metadata"].size());
    for (const auto& item : document["metadata"].items()) {
      line("  {:<42} {:<24} {}", Printable(item.key()), TypeColumn(item.value()),
           AsText(item.value()["value"]));
    }
  }
  if (document.contains("config")) {
    line("\nconfig.json: {} keys", document["config"].size());
    for (const auto& item : document["config"].items()) {
      line("  {:<42} {}", Printable(item.key()), AsText(item.value()));
    }
  }
  if (options.list_tensors) {
    line("\ntensors: {}", checkpoint.tensors().size());
    for (const TensorView& tensor : checkpoint.tensors()) {
      line("  {:<42} {:<8} {:<20} {:>12} bytes", Printable(tensor.name), DTypeName(tensor.dtype),
           ShapeText(tensor.shape), tensor.data.size());
    }
  }
  line("\ntotals:");
  for (const auto& item : document["totals"]["by_dtype"].items()) {
    AppendTotal(out, item.key(), item.value());
  }
  AppendTotal(out, "all", document["totals"]);
  return out;
}

std::string InspectJson(const Checkpoint& checkpoint, const InspectOptions& options) {
  return InspectDocument(checkpoint, options).dump(2, ' ', false, Json::error_handler_t::replace) +
         '\n';
}

}  // namespace lockstep
