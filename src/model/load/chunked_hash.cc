#include "model/load/chunked_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

namespace lockstep {

ChunkedHash::ChunkedHash(std::span<const std::byte> bytes)
    : bytes_(bytes), hashes_((bytes.size() + kChunk - 1) / kChunk) {}

void ChunkedHash::Hash(int32_t chunk) {
  const size_t begin = chunk * kChunk;
  hashes_[chunk] = XXH3_64bits(bytes_.data() + begin, std::min(kChunk, bytes_.size() - begin));
}

uint64_t ChunkedHash::Value() const {
  return XXH3_64bits_withSeed(hashes_.data(), hashes_.size() * sizeof(uint64_t), bytes_.size());
}

uint64_t HashOf(std::span<const std::byte> bytes) {
  ChunkedHash hash(bytes);
  for (int32_t chunk = 0; chunk < hash.chunks(); ++chunk) hash.Hash(chunk);
  return hash.Value();
}

uint64_t HashOf(std::span<const std::byte> bytes, ThreadPool* pool) {
  ChunkedHash hash(bytes);
  pool->BeginStep();
  pool->ParallelFor(hash.chunks(), [&](int32_t chunk, int32_t) { hash.Hash(chunk); });
  pool->EndStep();
  return hash.Value();
}

uint64_t MixHash(uint64_t hash, uint64_t next) {
  return XXH3_64bits_withSeed(&next, sizeof(next), hash);
}

}  // namespace lockstep
