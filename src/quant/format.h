// Format: what one weight format of the checkpoints is, as data: its block geometry, its exact
// expansion to f32, and how its groups become a packed matrix. One entry a format, in the folder of
// its family; registry.cc lists the families.
//
// A row of a matrix is a whole number of blocks. Most formats keep a block in one piece; some keep
// its codes in one tensor and its constants in others, so a row has up to kMaxPlanes planes.
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

inline constexpr int32_t kMaxPlanes = 3;

// Where the blocks of one row begin, in each plane.
struct BlockRow {
  const std::byte* plane[kMaxPlanes] = {};
};

struct Format {
  // As the files write it: "F32", "Q4_0"; for formats of several tensors, as their family does.
  std::string_view name;
  int32_t block_elements = 1;            // a row is a whole number of blocks
  int32_t block_bytes[kMaxPlanes] = {};  // of a block in each plane; 0: no such plane

  // Expands `blocks` consecutive blocks; bit for bit what the format's reference reader gives.
  void (*expand)(const BlockRow& row, int64_t blocks, float* out) = nullptr;

  // code, group, zero, has_min and f32_scales of the packed matrix; the rest unset.
  kernels::PackedMatrix packed;

  // Integer formats: group number `group` of `row`. Null for float formats, whose elements are
  // packed as they are.
  void (*unpack)(const BlockRow& row, int32_t group, Group* out) = nullptr;

  // Whether f16 holds every scale and minimum of `blocks` consecutive blocks exactly. Null: what
  // packed.f32_scales says goes for all matrices.
  bool (*fits_f16)(const BlockRow& row, int64_t blocks) = nullptr;

  bool integer() const { return unpack != nullptr; }
  int64_t RowBytes(int32_t plane, int32_t k) const {
    return int64_t{k} / block_elements * block_bytes[plane];
  }
};

// The format called `name`; null when it cannot be computed with.
const Format* FindFormat(std::string_view name);

// The families, each defined in its folder.
std::span<const Format> FloatFormats();
std::span<const Format> LegacyFormats();
std::span<const Format> KQuantFormats();
std::span<const Format> MlxAffineFormats();

}  // namespace lockstep::quant
