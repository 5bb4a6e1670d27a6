// The file of one entry of a PrefixStore: its layout, its name, and how it is checked. Not which
// files there are (entry_index.h).
//
// File, little endian:
//   0    "LSPREFIX"
//   8    u32 version, u32 cache group
//   16   u64 bytes of the blocks
//   24   SHA-256 of the identity: model, weights, numerics, KV scheme, block layout (32 bytes)
//   56   the chain digest of the tokens up to the end of the span (32 bytes)
//   88   the chain digest of the tokens up to its beginning (32 bytes)
//   120  the blocks, as the executor exports them
//   end  XXH3-128 of all that stands before it (16 bytes, its canonical form)
// A file that is longer or shorter than that, or differs in any bit, is no entry.
//
// Its name: half of the digest, half of the digest before it, the group; in hexadecimal.
//
// Pure functions but for ReadEntryFile; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cache/prefix_store.h"

namespace lockstep {

// To be raised whenever the bytes of a block of the same identity change: layout, rounding, order.
inline constexpr uint32_t kEntryVersion = 1;
inline constexpr int64_t kEntryHeaderBytes = 120;
inline constexpr int64_t kEntrySumBytes = 16;

constexpr int64_t EntryFileBytes(int64_t block_bytes) {
  return kEntryHeaderBytes + block_bytes + kEntrySumBytes;
}

// Half of a chain digest: enough to find a file by. What decides is the whole one, in the file.
using NodeName = std::array<uint64_t, 2>;
NodeName NameOf(const ChainDigest& digest);

struct EntryName {
  NodeName node{};
  NodeName parent{};
  int32_t group = 0;
  bool operator==(const EntryName&) const = default;
};

inline constexpr std::string_view kEntrySuffix = ".lsprefix";
std::string FileNameOf(const EntryName& name);
// None: not a name of ours.
std::optional<EntryName> ParseFileName(std::string_view file_name);

using EntryHeader = std::array<std::byte, kEntryHeaderBytes>;
using EntrySum = std::array<std::byte, kEntrySumBytes>;
EntryHeader HeaderOf(const PrefixEntry& entry, const ChainDigest& identity);
EntrySum SumOf(const EntryHeader& header, std::span<const std::byte> blocks);

// The blocks in the file at `path`, which must be the entry `key` of this identity with so many
// bytes of blocks; tells the file that it was used. Errors: kDataLoss saying what is wrong with it,
// those of opening and reading.
Result<PrefixBytes> ReadEntryFile(const std::string& path, const PrefixKey& key,
                                  const ChainDigest& identity, int64_t block_bytes);

}  // namespace lockstep
