// What the executor tells the KV manager about a model's caches: one entry a group of layers that
// share a policy and a block size. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// Names the policy that turns tokens into blocks (cache/policy.h); the scheduler never looks at it.
//
// kPaged, kLatent: entry i of a block table holds positions [i * block_tokens, (i + 1) *
// block_tokens), and all of them stay. kWindow: the same places, but entries that slid out of the
// window hold kNoBlock. kRecurrent: a table has two entries, the state that a step reads (kNoBlock:
// the empty state, before position 0) and the one that it writes; a block is one state.
enum class CacheKind { kPaged, kWindow, kRecurrent, kLatent };

struct CacheGroupSpec {
  CacheKind kind = CacheKind::kPaged;
  int32_t block_tokens = 0;  // positions a block holds, over all the group's layers
  int64_t block_bytes = 0;   // bytes of one block, over all the group's layers, keys and values
  std::string scheme;        // codec's name: "bf16", "q8", ...; part of every cache key
  int32_t window = 0;        // kWindow: position p reads positions (p - window, p]; >= 1
  int32_t sinks = 0;         // kWindow: and positions [0, sinks)
};

}  // namespace lockstep
