#include "weights/gguf_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "weights/byte_cursor.h"
#include "weights/printable.h"

namespace lockstep {
namespace {

// The least a metadata entry (length, one byte of key, type, one byte of value) and a tensor
// (length, one byte of name, dimensions, type, offset) take: a count that needs more than is left
// is false.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;
constexpr std::string_view kAlignmentKey = "general.alignment";

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, std::string_view file)
      : bytes_(bytes), file_(Printable(file, 4096)), cursor_(bytes) {}

  Result<GgufContents> Parse() {
    LOCKSTEP_RETURN_IF_ERROR(ParseHeader());
    std::unordered_set<std::string_view> keys;
    for (uint64_t i = 0; i < entry_count_; ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(const GgufEntry entry, ParseEntry(i));
      if (!keys.insert(entry.key).second) return KeyError(entry.key, "appears twice");
      if (entry.key == kAlignmentKey) LOCKSTEP_RETURN_IF_ERROR(SetAlignment(entry));
      contents_.entries.push_back(entry);
    }
    // Before the loop, as the entries may have left less than the header's check saw.
    if (tensor_count_ > cursor_.remaining() / kMinTensorBytes) return TooMany("tensors");
    for (uint64_t i = 0; i < tensor_count_; ++i) LOCKSTEP_RETURN_IF_ERROR(ParseTensor(i));
    LOCKSTEP_RETURN_IF_ERROR(PlaceTensors());
    return std::move(contents_);
  }

 private:
  Status Corrupt(std::string_view what) const {
    return DataLoss(fmt::format("{}: {}", file_, what));
  }
  Status KeyError(std::string_view key, std::string_view what) const {
    const std::string shown = Printable(key);
    return DataLoss(fmt::format("{}: metadata key '{}' {}", file_, shown, what), shown);
  }
  Status TensorError(std::string_view name, std::string_view what) const {
    const std::string shown = Printable(name);
    return DataLoss(fmt::format("{}: tensor '{}' {}", file_, shown, what), shown);
  }
  Status TooMany(std::string_view what) const {
    return Corrupt(fmt::format("claims {} {}, more than the {} bytes left can hold",
                               what == "tensors" ? tensor_count_ : entry_count_, what,
                               cursor_.remaining()));
  }

  Status ParseHeader() {
    std::span<const std::byte> magic;
    if (!cursor_.Take(4, magic) || std::memcmp(magic.data(), "GGUF", 4) != 0) {
      return InvalidArgument(
          fmt::format("{}: is not a GGUF file (it does not start with \"GGUF\")", file_));
    }
    if (!cursor_.Read(contents_.version)) return Corrupt("ends inside the GGUF header");
    const uint32_t version = contents_.version;
    if (version != 0 && (version & 0xffff) == 0) {
      return Unimplemented(
          fmt::format("{}: is a big-endian GGUF file; only little endian can be read", file_));
    }
    if (version != 2 && version != 3) {
      return Unimplemented(
          fmt::format("{}: is GGUF version {}; versions 2 and 3 can be read", file_, version));
    }
    if (!cursor_.Read(tensor_count_) || !cursor_.Read(entry_count_)) {
      return Corrupt("ends inside the GGUF header");
    }
    if (tensor_count_ > cursor_.remaining() / kMinTensorBytes) return TooMany("tensors");
    if (entry_count_ > cursor_.remaining() / kMinEntryBytes) return TooMany("metadata entries");
    return OkStatus();
  }

  Result<GgufEntry> ParseEntry(uint64_t index) {
    GgufEntry entry;
    uint64_t length = 0;
    ByteCursor ahead = cursor_;
    if (!ahead.Read(length) || length > ahead.remaining()) {
      return Corrupt(fmt::format("ends inside the key of metadata entry {}", index));
    }
    if (length == 0 || length > kGgufMaxKey) {
      return Corrupt(fmt::format("the key of metadata entry {} has {} bytes; 1 to {} are allowed",
                                 index, length, kGgufMaxKey));
    }
    uint32_t type = 0;
    if (!cursor_.ReadString(entry.key) || !cursor_.Read(type)) {
      return KeyError(entry.key, "is cut off by the end of the file");
    }
    if (type >= kGgufTypeCount) {
      return KeyError(entry.key, fmt::format("has the unknown value type {}", type));
    }
    entry.type = static_cast<GgufType>(type);
    LOCKSTEP_RETURN_IF_ERROR(ParseValue(entry));
    return entry;
  }

  Status ParseValue(GgufEntry& entry) {
    if (entry.type == GgufType::kString) {
      std::string_view text;
      if (!cursor_.ReadString(text)) {
        return KeyError(entry.key, "holds a string that is longer than the file");
      }
      entry.raw = std::as_bytes(std::span(text));
      return OkStatus();
    }
    if (entry.type == GgufType::kArray) return ParseArray(entry);
    if (!cursor_.Take(GgufScalarBytes(entry.type), entry.raw)) {
      return KeyError(entry.key, "is cut off by the end of the file");
    }
    if (entry.type == GgufType::kBool) return CheckBools(entry.key, entry.raw);
    return OkStatus();
  }

  Status ParseArray(GgufEntry& entry) {
    LOCKSTEP_RETURN_IF_ERROR(ParseArrayHeader(entry.key, entry.element_type, entry.count));
    const uint64_t start = cursor_.position();
    LOCKSTEP_RETURN_IF_ERROR(SkipElements(entry.key, entry.element_type, entry.count, 1));
    entry.raw = bytes_.subspan(start, cursor_.position() - start);
    return OkStatus();
  }

  Status ParseArrayHeader(std::string_view key, GgufType& type, uint64_t& count) {
    uint32_t number = 0;
    if (!cursor_.Read(number) || !cursor_.Read(count)) {
      return KeyError(key, "is cut off by the end of the file");
    }
    if (number >= kGgufTypeCount) {
      return KeyError(key, fmt::format("is an array of the unknown type {}", number));
    }
    type = static_cast<GgufType>(number);
    return OkStatus();
  }

  // Checks and passes `count` elements. `depth` is 1 for an array of plain values.
  Status SkipElements(std::string_view key, GgufType type, uint64_t count, int depth) {
    const uint32_t scalar = GgufScalarBytes(type);
    // A string takes at least its length, an array at least its type and count.
    const uint64_t least = scalar > 0 ? scalar : type == GgufType::kString ? 8 : 12;
    if (count > cursor_.remaining() / least) {
      return KeyError(key, fmt::format("claims an array of {} {} values, more than the {} bytes "
                                       "left can hold",
                                       count, GgufTypeName(type), cursor_.remaining()));
    }
    if (scalar > 0) {
      std::span<const std::byte> elements;
      if (!cursor_.Take(count * scalar, elements)) return KeyError(key, "is cut off");
      return type == GgufType::kBool ? CheckBools(key, elements) : OkStatus();
    }
    if (type == GgufType::kString) {
      std::string_view text;
      for (uint64_t i = 0; i < count; ++i) {
        if (!cursor_.ReadString(text)) {
          return KeyError(key, fmt::format("element {} is longer than the file", i));
        }
      }
      return OkStatus();
    }
    if (depth >= kGgufMaxArrayDepth) {
      return KeyError(key, fmt::format("nests arrays deeper than {} levels", kGgufMaxArrayDepth));
    }
    for (uint64_t i = 0; i < count; ++i) {
      GgufType inner = GgufType::kU8;
      uint64_t inner_count = 0;
      LOCKSTEP_RETURN_IF_ERROR(ParseArrayHeader(key, inner, inner_count));
      LOCKSTEP_RETURN_IF_ERROR(SkipElements(key, inner, inner_count, depth + 1));
    }
    return OkStatus();
  }

  Status CheckBools(std::string_view key, std::span<const std::byte> values) const {
    for (const std::byte value : values) {
      if (std::to_integer<int>(value) > 1) {
        return KeyError(
            key, fmt::format("holds {} where a bool must be 0 or 1", std::to_integer<int>(value)));
      }
    }
    return OkStatus();
  }

  Status SetAlignment(const GgufEntry& entry) {
    if (entry.type != GgufType::kU32) {
      return KeyError(entry.key, fmt::format("must be u32, found {}", entry.TypeText()));
    }
    uint32_t value = 0;
    std::memcpy(&value, entry.raw.data(), sizeof(value));
    if (!std::has_single_bit(value) || value < kGgufMinAlignment || value > kGgufMaxAlignment) {
      return KeyError(entry.key, fmt::format("is {}; it must be a power of two from {} to {}",
                                             value, kGgufMinAlignment, kGgufMaxAlignment));
    }
    contents_.alignment = value;
    return OkStatus();
  }

  Status ParseTensor(uint64_t index) {
    uint64_t length = 0;
    ByteCursor ahead = cursor_;
    if (!ahead.Read(length)) return Corrupt(fmt::format("ends inside tensor {}", index));
    if (length == 0 || length > kGgufMaxTensorName) {
      return Corrupt(fmt::format("the name of tensor {} has {} bytes; 1 to {} are allowed", index,
                                 length, kGgufMaxTensorName));
    }
    TensorView tensor;
    std::string_view name;
    uint32_t n_dims = 0;
    if (!cursor_.ReadString(name)) {
      return Corrupt(fmt::format("ends inside the name of tensor {}", index));
    }
    if (!names_.insert(name).second) return TensorError(name, "appears twice");
    tensor.name = name;
    if (!cursor_.Read(n_dims)) return TensorError(name, "is cut off by the end of the file");
    if (n_dims > kGgufMaxDims) {
      return TensorError(
          name, fmt::format("has {} dimensions; at most {} are allowed", n_dims, kGgufMaxDims));
    }
    for (uint32_t i = 0; i < n_dims; ++i) {
      int64_t dim = 0;
      if (!cursor_.Read(dim)) return TensorError(name, "is cut off by the end of the file");
      tensor.shape.push_back(dim);
    }
    std::reverse(tensor.shape.begin(), tensor.shape.end());
    uint32_t type = 0;
    uint64_t offset = 0;
    if (!cursor_.Read(type) || !cursor_.Read(offset)) {
      return TensorError(name, "is cut off by the end of the file");
    }
    const std::optional<DType> dtype = DTypeFromGguf(type);
    if (!dtype) {
      const std::string shown = Printable(name);
      return Unimplemented(
          fmt::format("{}: tensor '{}' has type number {}, which is unknown or was withdrawn",
                      file_, shown, type),
          shown);
    }
    tensor.dtype = *dtype;
    contents_.tensors.push_back(std::move(tensor));
    offsets_.push_back(offset);
    return OkStatus();
  }

  // Gives each tensor its bytes: the data section starts at the next multiple of the alignment.
  Status PlaceTensors() {
    const uint64_t alignment = contents_.alignment;
    const uint64_t data_start = (cursor_.position() + alignment - 1) / alignment * alignment;
    const uint64_t data_size = bytes_.size() > data_start ? bytes_.size() - data_start : 0;
    std::vector<size_t> order;
    for (size_t i = 0; i < contents_.tensors.size(); ++i) {
      TensorView& tensor = contents_.tensors[i];
      const auto size = TensorBytes(tensor.dtype, tensor.shape);
      if (!size.ok())
        return TensorError(tensor.name, "has an impossible " + size.status().message());
      if (offsets_[i] % alignment != 0) {
        return TensorError(
            tensor.name, fmt::format("starts at {}, not a multiple of {}", offsets_[i], alignment));
      }
      if (*size > data_size || offsets_[i] > data_size - *size) {
        return TensorError(
            tensor.name, fmt::format("needs {} bytes from {}, but the file holds {} bytes of data",
                                     *size, offsets_[i], data_size));
      }
      if (*size == 0) continue;
      tensor.data = bytes_.subspan(data_start + offsets_[i], *size);
      order.push_back(i);
    }
    std::sort(order.begin(), order.end(),
              [this](size_t a, size_t b) { return offsets_[a] < offsets_[b]; });
    for (size_t i = 1; i < order.size(); ++i) {
      const TensorView& before = contents_.tensors[order[i - 1]];
      if (offsets_[order[i - 1]] + before.data.size() > offsets_[order[i]]) {
        return TensorError(contents_.tensors[order[i]].name,
                           fmt::format("overlaps tensor '{}'", Printable(before.name)));
      }
    }
    return OkStatus();
  }

  std::span<const std::byte> bytes_;
  std::string file_;
  ByteCursor cursor_;
  uint64_t tensor_count_ = 0;
  uint64_t entry_count_ = 0;
  GgufContents contents_;
  std::unordered_set<std::string_view> names_;  // of the tensors, in the file's bytes
  std::vector<uint64_t> offsets_;               // of the tensors, in the data section
};

}  // namespace

uint32_t GgufScalarBytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

Result<GgufContents> ParseGguf(std::span<const std::byte> bytes, std::string_view file) {
  return Parser(bytes, file).Parse();
}

}  // namespace lockstep
