#include "weights/tensor.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace lockstep {
namespace {

constexpr int kNoGgufId = -1;

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  BlockGeometry block;
  int gguf_id;       // kNoGgufId: GGUF has no such type
  bool safetensors;  // safetensors has a type of this name
};

// In the order of the enum (checked below). The byte sizes of block types are those of ggml's
// structures: scales and minima, then packed quants.
constexpr std::array<DTypeInfo, kDTypeCount> kTypes = {{
    {DType::kF64, "F64", {1, 8}, 28, true},
    {DType::kF32, "F32", {1, 4}, 0, true},
    {DType::kF16, "F16", {1, 2}, 1, true},
    {DType::kBF16, "BF16", {1, 2}, 30, true},
    {DType::kI8, "I8", {1, 1}, 24, true},
    {DType::kI16, "I16", {1, 2}, 25, true},
    {DType::kI32, "I32", {1, 4}, 26, true},
    {DType::kI64, "I64", {1, 8}, 27, true},
    {DType::kU8, "U8", {1, 1}, kNoGgufId, true},
    {DType::kU16, "U16", {1, 2}, kNoGgufId, true},
    {DType::kU32, "U32", {1, 4}, kNoGgufId, true},
    {DType::kU64, "U64", {1, 8}, kNoGgufId, true},
    {DType::kBool, "BOOL", {1, 1}, kNoGgufId, true},
    {DType::kC64, "C64", {1, 8}, kNoGgufId, true},
    {DType::kF8E4M3, "F8_E4M3", {1, 1}, kNoGgufId, true},
    {DType::kF8E5M2, "F8_E5M2", {1, 1}, kNoGgufId, true},
    {DType::kF8E4M3FNUZ, "F8_E4M3FNUZ", {1, 1}, kNoGgufId, true},
    {DType::kF8E5M2FNUZ, "F8_E5M2FNUZ", {1, 1}, kNoGgufId, true},
    {DType::kF8E8M0, "F8_E8M0", {1, 1}, kNoGgufId, true},
    {DType::kF6E2M3, "F6_E2M3", {4, 3}, kNoGgufId, true},
    {DType::kF6E3M2, "F6_E3M2", {4, 3}, kNoGgufId, true},
    {DType::kF4, "F4", {2, 1}, kNoGgufId, true},
    {DType::kQ1_0, "Q1_0", {128, 18}, 41, false},
    {DType::kQ2_0, "Q2_0", {64, 18}, 42, false},
    {DType::kQ4_0, "Q4_0", {32, 18}, 2, false},
    {DType::kQ4_1, "Q4_1", {32, 20}, 3, false},
    {DType::kQ5_0, "Q5_0", {32, 22}, 6, false},
    {DType::kQ5_1, "Q5_1", {32, 24}, 7, false},
    {DType::kQ8_0, "Q8_0", {32, 34}, 8, false},
    {DType::kQ8_1, "Q8_1", {32, 36}, 9, false},
    {DType::kQ2_K, "Q2_K", {256, 84}, 10, false},
    {DType::kQ3_K, "Q3_K", {256, 110}, 11, false},
    {DType::kQ4_K, "Q4_K", {256, 144}, 12, false},
    {DType::kQ5_K, "Q5_K", {256, 176}, 13, false},
    {DType::kQ6_K, "Q6_K", {256, 210}, 14, false},
    {DType::kQ8_K, "Q8_K", {256, 292}, 15, false},
    {DType::kIQ1_S, "IQ1_S", {256, 50}, 19, false},
    {DType::kIQ1_M, "IQ1_M", {256, 56}, 29, false},
    {DType::kIQ2_XXS, "IQ2_XXS", {256, 66}, 16, false},
    {DType::kIQ2_XS, "IQ2_XS", {256, 74}, 17, false},
    {DType::kIQ2_S, "IQ2_S", {256, 82}, 22, false},
    {DType::kIQ3_XXS, "IQ3_XXS", {256, 98}, 18, false},
    {DType::kIQ3_S, "IQ3_S", {256, 110}, 21, false},
    {DType::kIQ4_NL, "IQ4_NL", {32, 18}, 20, false},
    {DType::kIQ4_XS, "IQ4_XS", {256, 136}, 23, false},
    {DType::kTQ1_0, "TQ1_0", {256, 54}, 34, false},
    {DType::kTQ2_0, "TQ2_0", {256, 66}, 35, false},
    {DType::kMXFP4, "MXFP4", {32, 17}, 39, false},
    {DType::kNVFP4, "NVFP4", {64, 36}, 40, false},
}};

constexpr bool InEnumOrder() {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<size_t>(kTypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(InEnumOrder());

const DTypeInfo& Info(DType dtype) { return kTypes[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view DTypeName(DType dtype) { return Info(dtype).name; }
BlockGeometry DTypeBlock(DType dtype) { return Info(dtype).block; }
bool IsGgufBlockType(DType dtype) {
  return Info(dtype).block.elements > 1 && Info(dtype).gguf_id != kNoGgufId;
}

std::optional<DType> DTypeFromGguf(uint32_t id) {
  for (const DTypeInfo& info : kTypes) {
    if (info.gguf_id != kNoGgufId && static_cast<uint32_t>(info.gguf_id) == id) return info.dtype;
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromSafetensors(std::string_view name) {
  for (const DTypeInfo& info : kTypes) {
    if (info.safetensors && info.name == name) return info.dtype;
  }
  return std::nullopt;
}

Result<int64_t> ElementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  // A zero dimension must not hide an impossible one beside it: the product of the others counts.
  int64_t nonzero = 1;
  for (const int64_t dim : shape) {
    if (dim < 0) {
      return DataLoss(fmt::format("shape {} has a negative dimension", ShapeText(shape)));
    }
    if (dim != 0 && nonzero > std::numeric_limits<int64_t>::max() / dim) {
      return DataLoss(fmt::format("shape {} has more than 2^63 elements", ShapeText(shape)));
    }
    if (dim != 0) nonzero *= dim;
    count = dim == 0 ? 0 : count;
  }
  return count == 0 ? 0 : nonzero;
}

Result<uint64_t> TensorBytes(DType dtype, std::span<const int64_t> shape) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t count, ElementCount(shape));
  const BlockGeometry block = DTypeBlock(dtype);
  const bool by_row = IsGgufBlockType(dtype);
  const int64_t row = shape.empty() ? 1 : shape.back();
  if ((by_row ? row : count) % block.elements != 0) {
    return DataLoss(fmt::format("shape {} of type {}: {} of {} elements is not a multiple of {}",
                                ShapeText(shape), DTypeName(dtype), by_row ? "a row" : "a total",
                                by_row ? row : count, block.elements));
  }
  const uint64_t blocks = static_cast<uint64_t>(count) / block.elements;
  if (blocks > std::numeric_limits<uint64_t>::max() / block.bytes) {
    return DataLoss(fmt::format("shape {} of type {} has more than 2^64 bytes", ShapeText(shape),
                                DTypeName(dtype)));
  }
  return blocks * block.bytes;
}

std::string ShapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

int64_t TensorView::elements() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

}  // namespace lockstep
