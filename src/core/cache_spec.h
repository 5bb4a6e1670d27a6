// What the executor tells the KV manager about a model's caches: one entry a group of layers that
// share a policy and a block size. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// Names the policy that turns tokens into blocks (cache/policy.h); the scheduler never looks at it.
enum class CacheKind { kPaged };

struct CacheGroupSpec {
  CacheKind kind = CacheKind::kPaged;
  int32_t block_tokens = 0;  // positions a block holds, over all the group's layers
  int64_t block_bytes = 0;   // bytes of one block, over all the group's layers, keys and values
  std::string scheme;        // codec's name: "bf16", "q8", ...; part of every cache key
};

}  // namespace lockstep
