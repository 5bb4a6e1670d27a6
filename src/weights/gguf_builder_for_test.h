// GgufBuilder: writes GGUF files for tests, valid or not, field by field, and remembers where each
// number stands so that a test can put another there. Tests only.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf_metadata.h"

namespace lockstep {

class GgufBuilder {
 public:
  struct Field {
    std::string what;
    size_t offset;
    size_t width;
  };

  // The header; the counts are those that the file claims.
  GgufBuilder(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
    bytes_ = "GGUF";
    Number("version", version).Number("tensor count", tensors).Number("entry count", entries);
  }

  template <typename T>
  GgufBuilder& Number(std::string what, T value) {
    fields_.push_back({std::move(what), bytes_.size(), sizeof(T)});
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  GgufBuilder& Raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  GgufBuilder& String(const std::string& what, std::string_view text) {
    return Number(what + " length", uint64_t{text.size()}).Raw(text);
  }
  GgufBuilder& Key(std::string_view key, GgufType type) {
    return String("key", key).Number("value type", static_cast<uint32_t>(type));
  }
  template <typename T>
  GgufBuilder& Entry(std::string_view key, GgufType type, T value) {
    return Key(key, type).Number(std::string(key), value);
  }
  GgufBuilder& StringEntry(std::string_view key, std::string_view value) {
    return Key(key, GgufType::kString).String("value", value);
  }
  // The head of an array; the elements follow.
  GgufBuilder& Array(GgufType element, uint64_t count) {
    return Number("element type", static_cast<uint32_t>(element)).Number("array count", count);
  }
  // `dims` in the file's order, innermost first.
  GgufBuilder& Tensor(std::string_view name, const std::vector<int64_t>& dims, uint32_t type,
                      uint64_t offset) {
    String("tensor name", name).Number("n_dims", static_cast<uint32_t>(dims.size()));
    for (const int64_t dim : dims) Number("dim", dim);
    return Number("tensor type", type).Number("tensor offset", offset);
  }
  // Zeros up to a multiple of `alignment`, then `size` bytes.
  GgufBuilder& Data(size_t size, size_t alignment = 32, char value = 'd') {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment, '\0');
    bytes_.append(size, value);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }
  const std::vector<Field>& fields() const { return fields_; }

 private:
  std::string bytes_;
  std::vector<Field> fields_;
};

inline constexpr uint32_t kGgmlF32 = 0;
inline constexpr uint32_t kGgmlQ4_0 = 2;

// A small file with every kind of value, two tensors and data.
inline GgufBuilder SmallGguf() {
  GgufBuilder b(2, 6);
  b.StringEntry("general.architecture", "llama");
  b.Entry("general.alignment", GgufType::kU32, uint32_t{32});
  b.Entry("a.bool", GgufType::kBool, uint8_t{1});
  b.Entry("a.f32", GgufType::kF32, 1.5f);
  b.Key("a.strings", GgufType::kArray).Array(GgufType::kString, 2);
  b.String("element", "x").String("element", "");
  b.Key("a.nested", GgufType::kArray).Array(GgufType::kArray, 2);
  b.Array(GgufType::kU16, 2).Number("e", uint16_t{1}).Number("e", uint16_t{2});
  b.Array(GgufType::kU8, 0);
  b.Tensor("first", {3, 2}, kGgmlF32, 0).Tensor("second", {32}, kGgmlQ4_0, 32);
  b.Data(32 + 18);
  return b;
}

}  // namespace lockstep
