// Format: what one weight format of the checkpoints is, as data: its block geometry, its exact
// expansion to f32, and how its groups become a packed matrix. One entry a format, in the folder of
// its family; registry.cc lists the families.
//
// Thread-safety: immutable; the functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/gemm.h"

namespace lockstep::quant {

// One K-group of one output as the integer kernels want it: value = scale * (code - zero) +
// minimum.
struct Group {
  static constexpr int32_t kMaxGroup = 32;
  int8_t codes[kMaxGroup];  // the first PackedMatrix::group of them
  float scale;
  float minimum;
};

struct Format {
  std::string_view name;       // as both file formats write it: "F32", "Q4_0"
  int32_t block_elements = 1;  // a row is a whole number of blocks
  int32_t block_bytes = 0;

  // Expands `blocks` consecutive blocks; bit for bit what the format's reference reader gives.
  void (*expand)(const std::byte* data, int64_t blocks, float* out) = nullptr;

  // code, group, zero, has_min and f32_scales of the packed matrix; the rest unset.
  kernels::PackedMatrix packed;

  // Integer formats: group number `group` of the row that begins at `row`. Null for float formats,
  // whose elements are packed as they are.
  void (*unpack)(const std::byte* row, int32_t group, Group* out) = nullptr;

  bool integer() const { return unpack != nullptr; }
  int64_t RowBytes(int32_t k) const { return int64_t{k} / block_elements * block_bytes; }
};

// The format that the files call `name`; null when it cannot be computed with.
const Format* FindFormat(std::string_view name);

// The families, each defined in its folder.
std::span<const Format> FloatFormats();
std::span<const Format> LegacyFormats();
std::span<const Format> KQuantFormats();

}  // namespace lockstep::quant
