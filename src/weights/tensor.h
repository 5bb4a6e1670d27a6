// TensorView and DType: what a checkpoint says about one tensor, and where its bytes are. Not a
// tensor to compute with: which types can be decoded is the quant layer's matter; every type that
// the file formats define is recognised here, so that any file can be listed.
//
// Plain values, thread-compatible. A TensorView does not own its bytes: they belong to the file it
// came from.
//
// Sources: the GGUF specification (ggml, docs/gguf.md) and ggml's block structures for the block
// types; the safetensors format description for the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lockstep {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,  // one byte
  kC64,   // two f32
  kF8E4M3,
  kF8E5M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF6E2M3,  // four elements in three bytes
  kF6E3M2,
  kF4,  // two elements in a byte
  // GGUF block types.
  kQ1_0,
  kQ2_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ8_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ8_K,
  kIQ1_S,
  kIQ1_M,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kIQ4_NL,
  kIQ4_XS,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
  kNVFP4,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kNVFP4) + 1;

// `elements` consecutive elements take `bytes` bytes; {1, size} for the plain types.
struct BlockGeometry {
  uint32_t elements;
  uint32_t bytes;
};

// The name both formats use: "F32", "BF16", "F8_E4M3", "Q4_0", "IQ2_XXS", ...
std::string_view DTypeName(DType dtype);
BlockGeometry DTypeBlock(DType dtype);
// One of GGUF's block types: a row (the innermost dimension) is a whole number of blocks.
bool IsGgufBlockType(DType dtype);

// The type with GGUF's number (ggml_type) `id`; nothing for unknown and for withdrawn numbers.
std::optional<DType> DTypeFromGguf(uint32_t id);
// The type that a safetensors header calls `name`; nothing for an unknown name.
std::optional<DType> DTypeFromSafetensors(std::string_view name);

// The product of `shape` (1 for a scalar's empty shape). Errors: a negative dimension, overflow of
// int64_t.
Result<int64_t> ElementCount(std::span<const int64_t> shape);
// The bytes that a dense tensor takes. Errors: as above, the byte count overflows, a row (GGUF
// block types) or the whole (types below one byte) is not a whole number of blocks.
Result<uint64_t> TensorBytes(DType dtype, std::span<const int64_t> shape);
// "[576, 1536]"
std::string ShapeText(std::span<const int64_t> shape);

struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  // Outermost first, as HF writes it: a weight is [N, K] with K contiguous. GGUF's reversed
  // dimensions are turned round. Empty for a scalar.
  std::vector<int64_t> shape;
  // Exactly TensorBytes(dtype, shape) bytes, row-major, little endian. GGUF data starts at the
  // file's alignment (8 or more, 32 by default); safetensors data may start at any byte.
  std::span<const std::byte> data;

  // REQUIRES: a view that a reader of this layer made (the product is checked there).
  int64_t elements() const;
};

}  // namespace lockstep
