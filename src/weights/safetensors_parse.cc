#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "weights/byte_cursor.h"
#include "weights/printable.h"
#include "weights/safetensors.h"

namespace lockstep {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxDims = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

struct Span {
  uint64_t begin;
  uint64_t end;
};

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, std::string_view file)
      : bytes_(bytes), file_(Printable(file, 4096)) {}

  Result<SafetensorsContents> Parse() {
    simdjson::dom::parser parser;
    simdjson::dom::object header;
    LOCKSTEP_RETURN_IF_ERROR(ParseHeader(parser, header));
    std::unordered_set<std::string_view> names;
    for (const auto [name, value] : header) {
      if (!names.insert(name).second) return TensorError(name, "appears twice");
      LOCKSTEP_RETURN_IF_ERROR(name == kMetadataKey ? ParseMetadata(value)
                                                    : ParseTensor(name, value));
    }
    LOCKSTEP_RETURN_IF_ERROR(PlaceTensors());
    return std::move(contents_);
  }

 private:
  Status Corrupt(std::string_view what) const {
    return DataLoss(fmt::format("{}: {}", file_, what));
  }
  Status TensorError(std::string_view name, std::string_view what) const {
    const std::string shown = Printable(name);
    return DataLoss(fmt::format("{}: tensor '{}' {}", file_, shown, what), shown);
  }

  Status ParseHeader(simdjson::dom::parser& parser, simdjson::dom::object& header) {
    ByteCursor cursor(bytes_);
    uint64_t length = 0;
    std::span<const std::byte> text;
    if (!cursor.Read(length)) return Corrupt("is too short to be a safetensors file");
    if (length > kMaxHeaderBytes) {
      return Corrupt(fmt::format("claims a header of {} bytes; at most {} are allowed", length,
                                 kMaxHeaderBytes));
    }
    if (!cursor.Take(length, text)) {
      return Corrupt(fmt::format("claims a header of {} bytes, but only {} follow", length,
                                 cursor.remaining()));
    }
    data_ = bytes_.subspan(cursor.position());
    simdjson::dom::element root;
    const auto error =
        parser.parse(reinterpret_cast<const uint8_t*>(text.data()), text.size()).get(root);
    if (error) {
      return Corrupt(fmt::format("the header is not JSON: {}", simdjson::error_message(error)));
    }
    if (root.get(header)) return Corrupt("the header is not a JSON object");
    return OkStatus();
  }

  Status ParseMetadata(simdjson::dom::element value) {
    simdjson::dom::object object;
    if (value.get(object)) return Corrupt("__metadata__ is not an object");
    std::unordered_set<std::string_view> keys;
    for (const auto [key, item] : object) {
      std::string_view text;
      if (item.get(text)) {
        return Corrupt(fmt::format("__metadata__ key '{}' is not a string", Printable(key)));
      }
      if (!keys.insert(key).second) {
        return Corrupt(fmt::format("__metadata__ key '{}' appears twice", Printable(key)));
      }
      contents_.metadata.emplace_back(key, text);
    }
    return OkStatus();
  }

  Status ParseTensor(std::string_view name, simdjson::dom::element value) {
    simdjson::dom::object object;
    if (value.get(object)) return TensorError(name, "is not described by an object");
    std::optional<simdjson::dom::element> dtype, shape, offsets;
    for (const auto [key, item] : object) {
      auto* field = key == "dtype"          ? &dtype
                    : key == "shape"        ? &shape
                    : key == "data_offsets" ? &offsets
                                            : nullptr;
      if (field == nullptr) continue;  // as the reference reader does
      if (*field) return TensorError(name, fmt::format("has '{}' twice", key));
      *field = item;
    }
    if (!dtype) return TensorError(name, "has no 'dtype'");
    if (!shape) return TensorError(name, "has no 'shape'");
    if (!offsets) return TensorError(name, "has no 'data_offsets'");
    TensorView tensor;
    tensor.name = name;
    LOCKSTEP_RETURN_IF_ERROR(ParseDType(name, *dtype, tensor.dtype));
    LOCKSTEP_RETURN_IF_ERROR(ParseShape(name, *shape, tensor.shape));
    LOCKSTEP_RETURN_IF_ERROR(ParseOffsets(name, *offsets, tensor));
    contents_.tensors.push_back(std::move(tensor));
    return OkStatus();
  }

  Status ParseDType(std::string_view name, simdjson::dom::element value, DType& out) const {
    std::string_view text;
    if (value.get(text)) return TensorError(name, "has a 'dtype' that is not a string");
    const std::optional<DType> dtype = DTypeFromSafetensors(text);
    if (!dtype) {
      const std::string shown = Printable(name);
      return Unimplemented(
          fmt::format("{}: tensor '{}' has the unknown dtype '{}'", file_, shown, Printable(text)),
          shown);
    }
    out = *dtype;
    return OkStatus();
  }

  Status ParseShape(std::string_view name, simdjson::dom::element value,
                    std::vector<int64_t>& out) const {
    simdjson::dom::array dims;
    if (value.get(dims)) return TensorError(name, "has a 'shape' that is not an array");
    for (const simdjson::dom::element item : dims) {
      int64_t dim = 0;
      if (item.get(dim) || dim < 0) {
        return TensorError(name, "has a 'shape' with an element that is not an integer from 0 up");
      }
      if (out.size() == kMaxDims) {
        return TensorError(name, fmt::format("has more than {} dimensions", kMaxDims));
      }
      out.push_back(dim);
    }
    return OkStatus();
  }

  Status ParseOffsets(std::string_view name, simdjson::dom::element value,
                      const TensorView& tensor) {
    simdjson::dom::array array;
    if (value.get(array)) return TensorError(name, "has 'data_offsets' that are not an array");
    uint64_t numbers[2] = {};
    size_t count = 0;
    for (const simdjson::dom::element item : array) {
      if (count == 2 || item.get(numbers[count])) {
        return TensorError(name, "has 'data_offsets' that are not two integers from 0 up");
      }
      ++count;
    }
    const auto [begin, end] = numbers;
    if (count != 2) {
      return TensorError(name, "has 'data_offsets' that are not two integers from 0 up");
    }
    if (begin > end) {
      return TensorError(name, fmt::format("has data_offsets [{}, {}] in reverse", begin, end));
    }
    if (end > data_.size()) {
      return TensorError(name, fmt::format("has data_offsets [{}, {}], but the file holds {} bytes "
                                           "of data",
                                           begin, end, data_.size()));
    }
    const auto size = TensorBytes(tensor.dtype, tensor.shape);
    if (!size.ok()) return TensorError(name, "has an impossible " + size.status().message());
    if (*size != end - begin) {
      return TensorError(
          name,
          fmt::format("takes {} bytes as {} {}, but data_offsets [{}, {}] span {}", *size,
                      DTypeName(tensor.dtype), ShapeText(tensor.shape), begin, end, end - begin));
    }
    spans_.push_back({begin, end});
    return OkStatus();
  }

  // Gives each tensor its bytes, in the order of the data; the spans must tile it.
  Status PlaceTensors() {
    std::vector<size_t> order(spans_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return spans_[a].begin != spans_[b].begin ? spans_[a].begin < spans_[b].begin
                                                : spans_[a].end < spans_[b].end;
    });
    std::vector<TensorView> sorted;
    sorted.reserve(order.size());
    uint64_t covered = 0;
    for (const size_t i : order) {
      TensorView& tensor = contents_.tensors[i];
      if (spans_[i].begin < covered) {
        return TensorError(tensor.name,
                           fmt::format("overlaps tensor '{}'", Printable(sorted.back().name)));
      }
      if (spans_[i].begin > covered) {
        return TensorError(tensor.name, fmt::format("starts at {}, after a hole from {}",
                                                    spans_[i].begin, covered));
      }
      covered = spans_[i].end;
      tensor.data = data_.subspan(spans_[i].begin, spans_[i].end - spans_[i].begin);
      sorted.push_back(std::move(tensor));
    }
    if (covered != data_.size()) {
      return Corrupt(
          fmt::format("holds {} bytes of data, but its tensors take {}", data_.size(), covered));
    }
    contents_.tensors = std::move(sorted);
    return OkStatus();
  }

  std::span<const std::byte> bytes_;
  std::span<const std::byte> data_;  // after the header
  std::string file_;
  SafetensorsContents contents_;
  std::vector<Span> spans_;  // of contents_.tensors, in data_
};

}  // namespace

Result<SafetensorsContents> ParseSafetensors(std::span<const std::byte> bytes,
                                             std::string_view file) {
  return Parser(bytes, file).Parse();
}

}  // namespace lockstep
