#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "targets.h"
#include "weights/gguf_json.h"
#include "weights/gguf_parse.h"
#include "weights_checks.h"

namespace lockstep::fuzz {
namespace {

// Every getter on every key: most are the wrong type, which must be an error and nothing else.
void CallGetters(const GgufMetadata& metadata, std::string_view key) {
  const bool present = metadata.Has(key);
  LOCKSTEP_CHECK(present);
  const bool answers[] = {
      metadata.GetString(key).ok(),    metadata.GetBool(key).ok(),
      metadata.GetI32(key).ok(),       metadata.GetU32(key).ok(),
      metadata.GetI64(key).ok(),       metadata.GetU64(key).ok(),
      metadata.GetF32(key).ok(),       metadata.GetStringArray(key).ok(),
      metadata.GetBoolArray(key).ok(), metadata.GetI32Array(key).ok(),
      metadata.GetU32Array(key).ok(),  metadata.GetI64Array(key).ok(),
      metadata.GetF32Array(key).ok(),  metadata.GetU32PerLayer(key, 3).ok(),
  };
  (void)answers;
}

}  // namespace

void Gguf(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto contents = ParseGguf(bytes, "fuzz.gguf");
  if (!contents.ok()) {
    LOCKSTEP_CHECK(contents.status().message().starts_with("fuzz.gguf: "));
    return;
  }
  CheckTensors(contents->tensors, bytes);
  const GgufMetadata metadata("fuzz.gguf", std::move(contents->entries));
  InspectOptions everything;
  everything.max_array = everything.max_string = std::string::npos;
  for (const GgufEntry& entry : metadata.entries()) {
    CallGetters(metadata, entry.key);
    for (const InspectOptions& options : {InspectOptions(), everything}) {
      (void)GgufValueJson(entry, options)
          .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    }
  }
}

}  // namespace lockstep::fuzz
