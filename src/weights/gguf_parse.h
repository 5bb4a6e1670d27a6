// The parse of one GGUF file (or one part of a split one) in memory: every number is checked before
// it is used or allocated for. Pure; thread-safe. Files, parts and look-ups are gguf.h's matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "weights/gguf_metadata.h"
#include "weights/tensor.h"

namespace lockstep {

inline constexpr uint32_t kGgufMaxDims = 4;
inline constexpr uint64_t kGgufMaxTensorName = 64;
inline constexpr uint64_t kGgufMaxKey = 65535;
inline constexpr int kGgufMaxArrayDepth = 4;
inline constexpr uint64_t kGgufDefaultAlignment = 32;
inline constexpr uint64_t kGgufMinAlignment = 8;
inline constexpr uint64_t kGgufMaxAlignment = 1 << 20;

// The bytes of a scalar; 0 for strings and arrays.
uint32_t GgufScalarBytes(GgufType type);

struct GgufContents {
  uint32_t version = 0;
  uint64_t alignment = kGgufDefaultAlignment;
  std::vector<GgufEntry> entries;   // in the file's order, unique keys
  std::vector<TensorView> tensors;  // in the file's order, unique names
};

// Keys, values and data point into `bytes`, which the caller keeps alive. `file` is for messages.
Result<GgufContents> ParseGguf(std::span<const std::byte> bytes, std::string_view file);

}  // namespace lockstep
