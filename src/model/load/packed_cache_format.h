// What the reader and the writer of packed caches share: numbers of the file that packed_cache.h
// describes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lockstep::packed_cache {

// To be raised whenever a packed matrix of the same checkpoint changes: another layout, format or
// rounding.
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kAlignment = 4096;
inline constexpr char kMagic[8] = {'L', 'S', 'P', 'A', 'C', 'K', 'E', 'D'};

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint64_t identity[2];
  uint64_t table_offset;
  uint64_t table_bytes;
  uint64_t table_hash;
  uint64_t header_hash;  // XXH3 of what stands before it
};
static_assert(sizeof(Header) == 64 && std::is_trivially_copyable_v<Header>);

// The fixed part of a matrix's entry.
struct MatrixRecord {
  int32_t code;
  int32_t n;
  int32_t k;
  int32_t group;
  int32_t zero;
  int32_t has_min;
  int32_t f32_scales;
  int32_t reserved;
  uint64_t panel_bytes;
  uint64_t offset;
  uint64_t bytes;
  uint64_t hash;
};
static_assert(sizeof(MatrixRecord) == 64 && std::is_trivially_copyable_v<MatrixRecord>);

}  // namespace lockstep::packed_cache
