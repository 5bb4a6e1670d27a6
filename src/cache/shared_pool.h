// SharedPool: the blocks of one cache group, each held by any number of sequences, and kept in the
// prefix tree besides or not. A kept block that no sequence holds is idle: whoever needs a block
// and finds none free takes the one that has been idle longest. Every operation is O(1) and, but
// for construction, free of allocation.
//
// Not thread-safe: the engine's thread alone. Borrows the tree.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "cache/block_pool.h"
#include "cache/prefix_tree.h"
#include "core/types.h"

namespace lockstep {

class SharedPool {
 public:
  SharedPool(int32_t blocks, PrefixTree* tree);

  // A block with one holder. REQUIRES: free() + idle() > 0.
  BlockId Take();
  // One more holder. REQUIRES: the block is held or idle.
  void Hold(BlockId id);
  // One holder less; of a block that nobody keeps, the last one frees it. REQUIRES: held.
  void Drop(BlockId id);

  // Enters a held block into the tree. REQUIRES: it is not kept yet; the entry is kNoBlock.
  void Keep(BlockId id, PrefixNode* node, int32_t entry);
  // Takes it out again; frees it if it was idle. REQUIRES: kept.
  void Forget(BlockId id);

  bool kept(BlockId id) const { return places_[static_cast<size_t>(id)].node != nullptr; }
  bool idle(BlockId id) const { return kept(id) && pool_.refs(id) == 1; }
  int32_t size() const { return pool_.size(); }
  int32_t free() const { return pool_.free(); }
  int32_t idle() const { return idle_; }
  int32_t held() const { return pool_.used() - idle_; }  // by sequences
  int32_t holders(BlockId id) const { return pool_.refs(id) - (kept(id) ? 1 : 0); }
  uint64_t evictions() const { return evictions_; }

  // Whether counts, idle list and tree agree. O(size).
  Status CheckIntegrity() const;

 private:
  // Where the tree names the block, and its neighbours in the idle list.
  struct Place {
    PrefixNode* node = nullptr;
    int32_t entry = 0;
    BlockId before = kNoBlock;
    BlockId after = kNoBlock;
  };
  Place& place(BlockId id) { return places_[static_cast<size_t>(id)]; }
  void AppendIdle(BlockId id);
  void RemoveIdle(BlockId id);

  BlockPool pool_;
  PrefixTree* tree_;
  std::vector<Place> places_;
  BlockId oldest_ = kNoBlock;
  BlockId newest_ = kNoBlock;
  int32_t idle_ = 0;
  uint64_t evictions_ = 0;
};

}  // namespace lockstep
