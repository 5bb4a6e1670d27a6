// GgufMetadata: the typed key/value section of a GGUF file. Immutable after the parse; thread-safe.
// Values point into the mapped file: an entry, and every string_view handed out, lives as long as
// the GgufFile it came from.
//
// Strings are bytes: a tokenizer's vocabulary may hold any, UTF-8 or not, and may repeat itself.
//
// Every getter's error names the file and the key, and says the expected and the actual type.
// Integers of any width and sign are taken where an integer is asked for, when the value is in
// range; a float where a float is asked for may be f32 or f64 and must be finite. Nothing else is
// converted. The ...Or forms give the default only when the key is absent.
//
// Source: the GGUF specification (ggml, docs/gguf.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace lockstep {

// The numbers are the file's.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
inline constexpr uint32_t kGgufTypeCount = 13;

// "u32", "string", "array"
std::string_view GgufTypeName(GgufType type);

struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::kU8;
  GgufType element_type = GgufType::kU8;  // arrays only; kArray when nested
  uint64_t count = 1;                     // arrays: the number of elements
  // The value's bytes as the file holds them, bounds checked: a scalar's bytes, a string's text
  // without its length, an array's elements without the array's own header.
  std::span<const std::byte> raw;

  // "u32", "array of string"
  std::string TypeText() const;
};

class GgufMetadata {
 public:
  GgufMetadata() = default;
  // `file` is for messages. REQUIRES: keys are unique, `raw` checked (the parser does both).
  GgufMetadata(std::string file, std::vector<GgufEntry> entries);

  std::span<const GgufEntry> entries() const { return entries_; }  // in the file's order
  const GgufEntry* Find(std::string_view key) const;               // null when absent
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  Result<std::string> GetString(std::string_view key) const;
  Result<bool> GetBool(std::string_view key) const;
  Result<int32_t> GetI32(std::string_view key) const;
  Result<uint32_t> GetU32(std::string_view key) const;
  Result<int64_t> GetI64(std::string_view key) const;
  Result<uint64_t> GetU64(std::string_view key) const;
  Result<float> GetF32(std::string_view key) const;

  Result<std::string> GetStringOr(std::string_view key, std::string fallback) const;
  Result<bool> GetBoolOr(std::string_view key, bool fallback) const;
  Result<int32_t> GetI32Or(std::string_view key, int32_t fallback) const;
  Result<uint32_t> GetU32Or(std::string_view key, uint32_t fallback) const;
  Result<int64_t> GetI64Or(std::string_view key, int64_t fallback) const;
  Result<uint64_t> GetU64Or(std::string_view key, uint64_t fallback) const;
  Result<float> GetF32Or(std::string_view key, float fallback) const;

  // Arrays of the element type (integers: any width, each value in range). Elements of a float
  // array may be anything a float can hold.
  Result<std::vector<std::string_view>> GetStringArray(std::string_view key) const;
  Result<std::vector<bool>> GetBoolArray(std::string_view key) const;
  Result<std::vector<int32_t>> GetI32Array(std::string_view key) const;
  Result<std::vector<uint32_t>> GetU32Array(std::string_view key) const;
  Result<std::vector<int64_t>> GetI64Array(std::string_view key) const;
  Result<std::vector<float>> GetF32Array(std::string_view key) const;

  // A value a layer: an array of exactly `layers` values, or one scalar for all of them.
  Result<std::vector<uint32_t>> GetU32PerLayer(std::string_view key, uint32_t layers) const;

 private:
  std::string file_;
  std::vector<GgufEntry> entries_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace lockstep
