// ChunkedHash: XXH3 over the XXH3 of a range's mebibytes, so that threads can share the work and
// come to the same value. Not a cryptographic hash.
//
// Thread-safety: threads may hash different chunks at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "platform/thread_pool.h"

namespace lockstep {

class ChunkedHash {
 public:
  static constexpr size_t kChunk = size_t{1} << 20;

  // `bytes` must live until Value().
  explicit ChunkedHash(std::span<const std::byte> bytes);
  int32_t chunks() const { return static_cast<int32_t>(hashes_.size()); }
  void Hash(int32_t chunk);
  // REQUIRES: all chunks were hashed.
  uint64_t Value() const;

 private:
  std::span<const std::byte> bytes_;
  std::vector<uint64_t> hashes_;
};

// All of it on this thread.
uint64_t HashOf(std::span<const std::byte> bytes);
// The same value, the work shared by all threads of `pool`, in a step of its own.
uint64_t HashOf(std::span<const std::byte> bytes, ThreadPool* pool);
// A value that depends on both, in this order.
uint64_t MixHash(uint64_t hash, uint64_t next);

}  // namespace lockstep
