#include "weights/gguf_metadata.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "weights/byte_cursor.h"
#include "weights/gguf_parse.h"
#include "weights/printable.h"

namespace lockstep {
namespace {

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// What a stored scalar is as a T: the value, or why there is none.
enum class Fit { kFits, kOutOfRange, kWrongType };

template <typename T, typename Stored>
Fit ConvertInteger(Stored stored, T& out) {
  if (!std::in_range<T>(stored)) return Fit::kOutOfRange;
  out = static_cast<T>(stored);
  return Fit::kFits;
}

template <typename T>
Fit ConvertScalar(GgufType type, const std::byte* at, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    if (type != GgufType::kBool) return Fit::kWrongType;
    out = Load<uint8_t>(at) != 0;
    return Fit::kFits;
  } else if constexpr (std::is_same_v<T, float>) {
    if (type == GgufType::kF32) {
      out = Load<float>(at);
      return Fit::kFits;
    }
    if (type != GgufType::kF64) return Fit::kWrongType;
    const double value = Load<double>(at);
    if (std::isfinite(value) && std::fabs(value) > std::numeric_limits<float>::max()) {
      return Fit::kOutOfRange;
    }
    out = static_cast<float>(value);
    return Fit::kFits;
  } else {
    switch (type) {
      case GgufType::kU8:
        return ConvertInteger(Load<uint8_t>(at), out);
      case GgufType::kI8:
        return ConvertInteger(Load<int8_t>(at), out);
      case GgufType::kU16:
        return ConvertInteger(Load<uint16_t>(at), out);
      case GgufType::kI16:
        return ConvertInteger(Load<int16_t>(at), out);
      case GgufType::kU32:
        return ConvertInteger(Load<uint32_t>(at), out);
      case GgufType::kI32:
        return ConvertInteger(Load<int32_t>(at), out);
      case GgufType::kU64:
        return ConvertInteger(Load<uint64_t>(at), out);
      case GgufType::kI64:
        return ConvertInteger(Load<int64_t>(at), out);
      default:
        return Fit::kWrongType;
    }
  }
}

template <typename T>
constexpr std::string_view kWanted = "";
template <typename T>
constexpr std::string_view kElement = "";
template <>
constexpr std::string_view kWanted<bool> = "bool";
template <>
constexpr std::string_view kElement<bool> = "bool";
template <>
constexpr std::string_view kWanted<float> = "a finite f32";
template <>
constexpr std::string_view kElement<float> = "f32";
template <>
constexpr std::string_view kWanted<int32_t> = "an integer in the range of i32";
template <>
constexpr std::string_view kElement<int32_t> = "integers in the range of i32";
template <>
constexpr std::string_view kWanted<uint32_t> = "an integer in the range of u32";
template <>
constexpr std::string_view kElement<uint32_t> = "integers in the range of u32";
template <>
constexpr std::string_view kWanted<int64_t> = "an integer in the range of i64";
template <>
constexpr std::string_view kElement<int64_t> = "integers in the range of i64";
template <>
constexpr std::string_view kWanted<uint64_t> = "an integer in the range of u64";

// Errors about one key of one file.
class KeyReader {
 public:
  KeyReader(const GgufMetadata& metadata, std::string_view file, std::string_view key)
      : entry_(metadata.Find(key)), file_(Printable(file, 4096)), key_(key) {}

  template <typename T>
  Result<T> Scalar() const {
    if (entry_ == nullptr) return Missing(kWanted<T>);
    if (GgufScalarBytes(entry_->type) == 0) return WrongType(kWanted<T>);
    T value{};
    LOCKSTEP_RETURN_IF_ERROR(Element(entry_->type, 0, kWanted<T>, value));
    if constexpr (std::is_same_v<T, float>) {
      if (!std::isfinite(value))
        return Error(fmt::format("expected a finite f32, found {}", value));
    }
    return value;
  }

  Result<std::string> String() const {
    if (entry_ == nullptr) return Missing("string");
    if (entry_->type != GgufType::kString) return WrongType("string");
    return std::string(reinterpret_cast<const char*>(entry_->raw.data()), entry_->raw.size());
  }

  template <typename T>
  Result<std::vector<T>> Array() const {
    const std::string wanted = fmt::format("an array of {}", kElement<T>);
    if (entry_ == nullptr) return Missing(wanted);
    if (entry_->type != GgufType::kArray) return WrongType(wanted);
    std::vector<T> values;
    // An empty array has no element of the wrong type, whatever type its writer put down.
    if (entry_->count == 0) return values;
    if (GgufScalarBytes(entry_->element_type) == 0) return WrongType(wanted);
    values.reserve(entry_->count);
    for (uint64_t i = 0; i < entry_->count; ++i) {
      T value{};
      LOCKSTEP_RETURN_IF_ERROR(Element(entry_->element_type, i, wanted, value));
      values.push_back(value);
    }
    return values;
  }

  Result<std::vector<std::string_view>> StringArray() const {
    constexpr std::string_view kArrayOfString = "array of string";
    if (entry_ == nullptr) return Missing(kArrayOfString);
    if (entry_->type != GgufType::kArray) return WrongType(kArrayOfString);
    std::vector<std::string_view> values;
    if (entry_->count == 0) return values;
    if (entry_->element_type != GgufType::kString) return WrongType(kArrayOfString);
    values.resize(entry_->count);
    ByteCursor cursor(entry_->raw);
    for (std::string_view& value : values) {
      // Checked at the parse; fails only when the file was written to since.
      if (!cursor.ReadString(value)) return Error("changed while the file was open");
    }
    return values;
  }

  Status Error(std::string_view what) const { return DataLoss(Message(what), Printable(key_)); }

 private:
  std::string Message(std::string_view what) const {
    return fmt::format("{}: metadata key '{}': {}", file_, Printable(key_), what);
  }
  Status Missing(std::string_view wanted) const {
    return NotFound(Message(fmt::format("is missing (expected {})", wanted)), Printable(key_));
  }
  Status WrongType(std::string_view wanted) const {
    return Error(fmt::format("expected {}, found {}", wanted, entry_->TypeText()));
  }

  template <typename T>
  Status Element(GgufType type, uint64_t index, std::string_view wanted, T& out) const {
    const std::byte* at = entry_->raw.data() + index * GgufScalarBytes(type);
    switch (ConvertScalar(type, at, out)) {
      case Fit::kFits:
        return OkStatus();
      case Fit::kWrongType:
        return WrongType(wanted);
      case Fit::kOutOfRange:
        break;
    }
    const std::string where =
        entry_->type == GgufType::kArray ? fmt::format(" at element {}", index) : std::string();
    return Error(fmt::format("expected {}, found {}{}", wanted, NumberText(type, at), where));
  }

  static std::string NumberText(GgufType type, const std::byte* at) {
    int64_t integer = 0;
    uint64_t natural = 0;
    if (ConvertScalar(type, at, integer) == Fit::kFits) {
      return fmt::format("{} ({})", integer, GgufTypeName(type));
    }
    if (ConvertScalar(type, at, natural) == Fit::kFits) {
      return fmt::format("{} ({})", natural, GgufTypeName(type));
    }
    return fmt::format("{} ({})", Load<double>(at), GgufTypeName(type));
  }

  const GgufEntry* entry_;
  std::string file_;
  std::string_view key_;
};

template <typename T>
Result<T> Or(bool present, Result<T> (GgufMetadata::*get)(std::string_view) const,
             const GgufMetadata& metadata, std::string_view key, T fallback) {
  if (!present) return fallback;
  return (metadata.*get)(key);
}

}  // namespace

std::string_view GgufTypeName(GgufType type) {
  static constexpr std::array<std::string_view, kGgufTypeCount> kNames = {
      "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
      "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<size_t>(type)];
}

std::string GgufEntry::TypeText() const {
  if (type != GgufType::kArray) return std::string(GgufTypeName(type));
  return fmt::format("array of {}", GgufTypeName(element_type));
}

GgufMetadata::GgufMetadata(std::string file, std::vector<GgufEntry> entries)
    : file_(std::move(file)), entries_(std::move(entries)) {
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].key, i);
}

const GgufEntry* GgufMetadata::Find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

Result<std::string> GgufMetadata::GetString(std::string_view key) const {
  return KeyReader(*this, file_, key).String();
}
Result<bool> GgufMetadata::GetBool(std::string_view key) const {
  return KeyReader(*this, file_, key).Scalar<bool>();
}
Result<int32_t> GgufMetadata::GetI32(std::string_view key) const {
  return KeyReader(*this, file_, key).Scalar<int32_t>();
}
Result<uint32_t> GgufMetadata::GetU32(std::string_view key) const {
  return KeyReader(*this, file_, key).Scalar<uint32_t>();
}
Result<int64_t> GgufMetadata::GetI64(std::string_view key) const {
  return KeyReader(*this, file_, key).Scalar<int64_t>();
}
Result<uint64_t> GgufMetadata::GetU64(std::string_view key) const {
  return KeyReader(*this, file_, key).Scalar<uint64_t>();
}
Result<float> GgufMetadata::GetF32(std::string_view key) const {
  return KeyReader(*this, file_, key).Scalar<float>();
}

Result<std::string> GgufMetadata::GetStringOr(std::string_view key, std::string fallback) const {
  return Or(Has(key), &GgufMetadata::GetString, *this, key, std::move(fallback));
}
Result<bool> GgufMetadata::GetBoolOr(std::string_view key, bool fallback) const {
  return Or(Has(key), &GgufMetadata::GetBool, *this, key, fallback);
}
Result<int32_t> GgufMetadata::GetI32Or(std::string_view key, int32_t fallback) const {
  return Or(Has(key), &GgufMetadata::GetI32, *this, key, fallback);
}
Result<uint32_t> GgufMetadata::GetU32Or(std::string_view key, uint32_t fallback) const {
  return Or(Has(key), &GgufMetadata::GetU32, *this, key, fallback);
}
Result<int64_t> GgufMetadata::GetI64Or(std::string_view key, int64_t fallback) const {
  return Or(Has(key), &GgufMetadata::GetI64, *this, key, fallback);
}
Result<uint64_t> GgufMetadata::GetU64Or(std::string_view key, uint64_t fallback) const {
  return Or(Has(key), &GgufMetadata::GetU64, *this, key, fallback);
}
Result<float> GgufMetadata::GetF32Or(std::string_view key, float fallback) const {
  return Or(Has(key), &GgufMetadata::GetF32, *this, key, fallback);
}

Result<std::vector<std::string_view>> GgufMetadata::GetStringArray(std::string_view key) const {
  return KeyReader(*this, file_, key).StringArray();
}
Result<std::vector<bool>> GgufMetadata::GetBoolArray(std::string_view key) const {
  return KeyReader(*this, file_, key).Array<bool>();
}
Result<std::vector<int32_t>> GgufMetadata::GetI32Array(std::string_view key) const {
  return KeyReader(*this, file_, key).Array<int32_t>();
}
Result<std::vector<uint32_t>> GgufMetadata::GetU32Array(std::string_view key) const {
  return KeyReader(*this, file_, key).Array<uint32_t>();
}
Result<std::vector<int64_t>> GgufMetadata::GetI64Array(std::string_view key) const {
  return KeyReader(*this, file_, key).Array<int64_t>();
}
Result<std::vector<float>> GgufMetadata::GetF32Array(std::string_view key) const {
  return KeyReader(*this, file_, key).Array<float>();
}

Result<std::vector<uint32_t>> GgufMetadata::GetU32PerLayer(std::string_view key,
                                                           uint32_t layers) const {
  const GgufEntry* entry = Find(key);
  if (entry == nullptr || entry->type != GgufType::kArray) {
    LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t value, GetU32(key));
    return std::vector<uint32_t>(layers, value);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto values, GetU32Array(key));
  if (values.size() != layers) {
    return KeyReader(*this, file_, key)
        .Error(fmt::format("expected one value or {}, found {}", layers, values.size()));
  }
  return values;
}

}  // namespace lockstep
