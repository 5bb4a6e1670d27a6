#include <string>
#include <string_view>

#include "base/check.h"
#include "targets.h"
#include "weights/hf_config.h"

namespace lockstep::fuzz {
namespace {

void Walk(const lockstep::HfConfig& config) {
  (void)config.EosTokenIds().ok();
  for (const std::string& key : config.Keys()) {
    const bool answers[] = {
        config.GetString(key).ok(),      config.GetBool(key).ok(),     config.GetI64(key).ok(),
        config.GetU32(key).ok(),         config.GetF64(key).ok(),      config.GetF32(key).ok(),
        config.GetStringArray(key).ok(), config.GetI64Array(key).ok(), config.GetF64Array(key).ok(),
        config.GetU32Or(key, 1).ok(),
    };
    // A value is of one type only; an integer is a number too, and an empty array of every kind.
    LOCKSTEP_CHECK(!(answers[0] && answers[1]));
    LOCKSTEP_CHECK(!(answers[2] && !answers[4]));
    const auto object = config.GetObject(key);
    if (object.ok()) Walk(*object);
  }
}

}  // namespace

void HfConfig(const uint8_t* data, size_t size) {
  const auto config =
      lockstep::HfConfig::Parse({reinterpret_cast<const char*>(data), size}, "config.json");
  if (config.ok()) {
    Walk(*config);
  } else {
    LOCKSTEP_CHECK(config.status().message().starts_with("config.json: "));
  }
}

}  // namespace lockstep::fuzz
