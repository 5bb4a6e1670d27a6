#include "weights/hf_config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "platform/mapped_file.h"
#include "weights/printable.h"
#include "weights/python_json.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxConfigBytes = 64 << 20;

// "an integer 3000000000", "a string", "null"
std::string Described(const Json& value) {
  if (value.is_number_integer()) return "the integer " + value.dump();
  if (value.is_number_float()) return fmt::format("the number {}", value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_null()) return "null";
  return value.is_string() ? "a string" : value.is_array() ? "an array" : "an object";
}

template <typename T>
bool ReadInteger(const Json& value, T& out) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned()) {
    const auto stored = value.get<uint64_t>();
    if (!std::in_range<T>(stored)) return false;
    out = static_cast<T>(stored);
    return true;
  }
  const auto stored = value.get<int64_t>();
  if (!std::in_range<T>(stored)) return false;
  out = static_cast<T>(stored);
  return true;
}

}  // namespace

HfConfig::HfConfig(std::string file, std::string prefix, std::shared_ptr<const Json> json)
    : file_(std::move(file)), prefix_(std::move(prefix)), json_(std::move(json)) {}

Result<HfConfig> HfConfig::Load(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile map, MappedFile::Open(path));
  if (map.size() > kMaxConfigBytes) {
    return DataLoss(
        fmt::format("{}: has {} bytes; a config may have {}", path, map.size(), kMaxConfigBytes));
  }
  return Parse({reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()}, path);
}

Result<HfConfig> HfConfig::Parse(std::string_view text, std::string_view file) {
  auto json = ParsePythonJson(text);
  if (!json.ok()) return json.status().WithContext(file);
  if (!json->is_object()) {
    return DataLoss(fmt::format("{}: expected an object, found {}", file, Described(*json)));
  }
  return HfConfig(std::string(file), "", std::make_shared<const Json>(std::move(*json)));
}

Status HfConfig::Error(std::string_view key, std::string_view what) const {
  const std::string path = prefix_ + Printable(key);
  return DataLoss(fmt::format("{}: {}: {}", file_, path, what), path);
}

Status HfConfig::WrongType(std::string_view key, std::string_view expected,
                           const Json& actual) const {
  return Error(key, fmt::format("expected {}, found {}", expected, Described(actual)));
}

const Json* HfConfig::Find(std::string_view key) const {
  const auto found = json_->find(std::string(key));
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

Result<const Json*> HfConfig::Need(std::string_view key) const {
  const Json* value = Find(key);
  if (value == nullptr) {
    const std::string path = prefix_ + Printable(key);
    return NotFound(fmt::format("{}: {}: is missing", file_, path), path);
  }
  return value;
}

bool HfConfig::Has(std::string_view key) const { return Find(key) != nullptr; }

std::vector<std::string> HfConfig::Keys() const {
  std::vector<std::string> keys;
  for (const auto& item : json_->items()) keys.push_back(item.key());
  return keys;
}

Result<HfConfig> HfConfig::GetObject(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* value, Need(key));
  if (!value->is_object()) return WrongType(key, "an object", *value);
  return HfConfig(file_, prefix_ + Printable(key) + ".", std::shared_ptr<const Json>(json_, value));
}

Result<std::optional<HfConfig>> HfConfig::GetObjectOr(std::string_view key) const {
  if (!Has(key)) return std::optional<HfConfig>();
  LOCKSTEP_ASSIGN_OR_RETURN(HfConfig object, GetObject(key));
  return std::optional<HfConfig>(std::move(object));
}

Result<std::string> HfConfig::GetString(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* value, Need(key));
  if (!value->is_string()) return WrongType(key, "a string", *value);
  return value->get<std::string>();
}

Result<bool> HfConfig::GetBool(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* value, Need(key));
  if (!value->is_boolean()) return WrongType(key, "true or false", *value);
  return value->get<bool>();
}

Result<int64_t> HfConfig::GetI64(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* value, Need(key));
  int64_t out = 0;
  if (!ReadInteger(*value, out)) return WrongType(key, "an integer in the range of i64", *value);
  return out;
}

Result<uint32_t> HfConfig::GetU32(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* value, Need(key));
  uint32_t out = 0;
  if (!ReadInteger(*value, out)) return WrongType(key, "an integer in the range of u32", *value);
  return out;
}

Result<double> HfConfig::GetF64(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* value, Need(key));
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return WrongType(key, "a finite number", *value);
  }
  return value->get<double>();
}

Result<float> HfConfig::GetF32(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const double value, GetF64(key));
  if (std::fabs(value) > std::numeric_limits<float>::max()) {
    return WrongType(key, "a number in the range of f32", **Need(key));
  }
  return static_cast<float>(value);
}

Result<std::string> HfConfig::GetStringOr(std::string_view key, std::string fallback) const {
  if (!Has(key)) return fallback;
  return GetString(key);
}
Result<bool> HfConfig::GetBoolOr(std::string_view key, bool fallback) const {
  if (!Has(key)) return fallback;
  return GetBool(key);
}
Result<int64_t> HfConfig::GetI64Or(std::string_view key, int64_t fallback) const {
  if (!Has(key)) return fallback;
  return GetI64(key);
}
Result<uint32_t> HfConfig::GetU32Or(std::string_view key, uint32_t fallback) const {
  if (!Has(key)) return fallback;
  return GetU32(key);
}
Result<double> HfConfig::GetF64Or(std::string_view key, double fallback) const {
  if (!Has(key)) return fallback;
  return GetF64(key);
}
Result<float> HfConfig::GetF32Or(std::string_view key, float fallback) const {
  if (!Has(key)) return fallback;
  return GetF32(key);
}

Result<std::vector<std::string>> HfConfig::GetStringArray(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* value, Need(key));
  if (!value->is_array()) return WrongType(key, "an array of strings", *value);
  std::vector<std::string> out;
  for (const Json& item : *value) {
    if (!item.is_string()) return WrongType(key, "an array of strings, each element one", item);
    out.push_back(item.get<std::string>());
  }
  return out;
}

Result<std::vector<int64_t>> HfConfig::GetI64Array(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* value, Need(key));
  if (!value->is_array()) return WrongType(key, "an array of integers", *value);
  std::vector<int64_t> out;
  for (const Json& item : *value) {
    int64_t number = 0;
    if (!ReadInteger(item, number)) {
      return WrongType(key, "an array of integers, each in the range of i64", item);
    }
    out.push_back(number);
  }
  return out;
}

Result<std::vector<double>> HfConfig::GetF64Array(std::string_view key) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* value, Need(key));
  if (!value->is_array()) return WrongType(key, "an array of numbers", *value);
  std::vector<double> out;
  for (const Json& item : *value) {
    if (!item.is_number()) return WrongType(key, "an array of numbers, each element one", item);
    out.push_back(item.get<double>());
  }
  return out;
}

Result<std::vector<int32_t>> HfConfig::EosTokenIds() const {
  constexpr std::string_view kKey = "eos_token_id";
  constexpr std::string_view kExpected = "a token id from 0 up, or an array of them";
  std::vector<int32_t> ids;
  const Json* value = Find(kKey);
  if (value == nullptr) return ids;
  const auto add = [&](const Json& item) {
    int32_t id = 0;
    if (!ReadInteger(item, id) || id < 0) return WrongType(kKey, kExpected, item);
    ids.push_back(id);
    return OkStatus();
  };
  if (!value->is_array()) {
    LOCKSTEP_RETURN_IF_ERROR(add(*value));
    return ids;
  }
  for (const Json& item : *value) LOCKSTEP_RETURN_IF_ERROR(add(item));
  return ids;
}

}  // namespace lockstep
