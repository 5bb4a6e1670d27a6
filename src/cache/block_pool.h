// Reference-counted block ids of one cache group. Hands out ids; the bytes behind them belong to
// the executor. Every operation but CheckIntegrity is O(1) and free of allocation after
// construction.
//
// Not thread-safe: the engine's thread alone.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "core/types.h"

namespace lockstep {

class BlockPool {
 public:
  // Ids 0 .. blocks - 1, all free. The ids freed last are handed out first: their bytes are warm.
  explicit BlockPool(int32_t blocks);

  // A block with one reference. REQUIRES: free() > 0.
  BlockId Take();
  // One more holder. REQUIRES: `id` is held.
  void Ref(BlockId id);
  // One holder less; the last one frees the block. REQUIRES: `id` is held.
  void Unref(BlockId id);

  int32_t size() const { return static_cast<int32_t>(refs_.size()); }
  int32_t free() const { return static_cast<int32_t>(free_.size()); }
  int32_t used() const { return size() - free(); }
  int32_t refs(BlockId id) const { return refs_[static_cast<size_t>(id)]; }

  // Whether free list and counts agree: every id is either free once or held. O(size).
  Status CheckIntegrity() const;

 private:
  std::vector<int32_t> refs_;  // [size]; 0: free
  std::vector<BlockId> free_;  // a stack
};

}  // namespace lockstep
