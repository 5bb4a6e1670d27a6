// HfConfig: a typed reader of a Hugging Face config.json (or generation_config.json, or an object
// inside one). Immutable; copies share the document; thread-safe.
//
// Every getter's error names the file and the key's path ("text_config.rope_scaling.factor") and
// says the expected and the actual type. A null counts as absent, as in transformers. A value of
// the wrong type is an error, never the default: an integer is a JSON integer in range (2048.0 and
// true are not), a float is any finite JSON number. The ...Or forms give the default only when
// absent.
//
// The dialect is Python's json module: NaN, Infinity and -Infinity are read (but only the array
// getter hands them out), and of a repeated key the last counts. At most 64 MiB and 64 levels.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lockstep {

class HfConfig {
 public:
  // Errors: kNotFound, kIoError, kDataLoss (not JSON; not an object).
  static Result<HfConfig> Load(const std::string& path);
  // `file` is for messages.
  static Result<HfConfig> Parse(std::string_view text, std::string_view file);

  const nlohmann::json& json() const { return *json_; }
  const std::string& file() const { return file_; }

  bool Has(std::string_view key) const;   // present and not null
  std::vector<std::string> Keys() const;  // ascending

  // The object under `key`, sharing this document.
  Result<HfConfig> GetObject(std::string_view key) const;
  Result<std::optional<HfConfig>> GetObjectOr(std::string_view key) const;  // nullopt when absent

  Result<std::string> GetString(std::string_view key) const;
  Result<bool> GetBool(std::string_view key) const;
  Result<int64_t> GetI64(std::string_view key) const;
  Result<uint32_t> GetU32(std::string_view key) const;
  Result<double> GetF64(std::string_view key) const;
  Result<float> GetF32(std::string_view key) const;

  Result<std::string> GetStringOr(std::string_view key, std::string fallback) const;
  Result<bool> GetBoolOr(std::string_view key, bool fallback) const;
  Result<int64_t> GetI64Or(std::string_view key, int64_t fallback) const;
  Result<uint32_t> GetU32Or(std::string_view key, uint32_t fallback) const;
  Result<double> GetF64Or(std::string_view key, double fallback) const;
  Result<float> GetF32Or(std::string_view key, float fallback) const;

  Result<std::vector<std::string>> GetStringArray(std::string_view key) const;
  Result<std::vector<int64_t>> GetI64Array(std::string_view key) const;
  Result<std::vector<double>> GetF64Array(std::string_view key) const;

  // eos_token_id: one id or a list of ids, each in [0, 2^31); empty when absent.
  Result<std::vector<int32_t>> EosTokenIds() const;

  // An error about `key` in this file: "config.json: text_config.<key>: <what>".
  Status Error(std::string_view key, std::string_view what) const;

 private:
  HfConfig(std::string file, std::string prefix, std::shared_ptr<const nlohmann::json> json);
  const nlohmann::json* Find(std::string_view key) const;  // null when absent or null
  Result<const nlohmann::json*> Need(std::string_view key) const;
  Status WrongType(std::string_view key, std::string_view expected,
                   const nlohmann::json& actual) const;

  std::string file_;
  std::string prefix_;  // "text_config." inside an object, empty at the top
  std::shared_ptr<const nlohmann::json> json_;
};

}  // namespace lockstep
