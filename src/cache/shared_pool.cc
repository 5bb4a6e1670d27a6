#include "cache/shared_pool.h"

#include <fmt/format.h>

#include "base/check.h"

namespace lockstep {

SharedPool::SharedPool(int32_t blocks, PrefixTree* tree)
    : pool_(blocks), tree_(tree), places_(static_cast<size_t>(blocks)) {}

BlockId SharedPool::Take() {
  if (pool_.free() == 0) {
    LOCKSTEP_CHECK(oldest_ != kNoBlock);
    ++evictions_;
    Forget(oldest_);
  }
  return pool_.Take();
}

void SharedPool::Hold(BlockId id) {
  if (idle(id)) RemoveIdle(id);
  pool_.Ref(id);
}

void SharedPool::Drop(BlockId id) {
  LOCKSTEP_CHECK(holders(id) > 0);
  pool_.Unref(id);
  if (idle(id)) AppendIdle(id);
}

void SharedPool::Keep(BlockId id, PrefixNode* node, int32_t entry) {
  LOCKSTEP_CHECK(!kept(id));
  pool_.Ref(id);
  tree_->Put(node, entry, id);
  place(id).node = node;
  place(id).entry = entry;
}

void SharedPool::Forget(BlockId id) {
  LOCKSTEP_CHECK(kept(id));
  if (idle(id)) RemoveIdle(id);
  const Place at = place(id);
  place(id).node = nullptr;
  pool_.Unref(id);
  tree_->Clear(at.node, at.entry);
}

void SharedPool::AppendIdle(BlockId id) {
  place(id).before = newest_;
  place(id).after = kNoBlock;
  (newest_ == kNoBlock ? oldest_ : place(newest_).after) = id;
  newest_ = id;
  ++idle_;
}

void SharedPool::RemoveIdle(BlockId id) {
  const Place& at = place(id);
  (at.before == kNoBlock ? oldest_ : place(at.before).after) = at.after;
  (at.after == kNoBlock ? newest_ : place(at.after).before) = at.before;
  --idle_;
}

Status SharedPool::CheckIntegrity() const {
  LOCKSTEP_RETURN_IF_ERROR(pool_.CheckIntegrity());
  int32_t listed = 0;
  for (BlockId id = oldest_; id != kNoBlock; id = places_[static_cast<size_t>(id)].after) {
    if (!idle(id)) return Internal(fmt::format("block {} is listed as idle and is not", id));
    if (++listed > idle_) break;
  }
  int32_t counted = 0;
  for (BlockId id = 0; id < size(); ++id) {
    if (idle(id)) ++counted;
    const Place& at = places_[static_cast<size_t>(id)];
    if (at.node != nullptr && at.node->blocks[static_cast<size_t>(at.entry)] != id) {
      return Internal(fmt::format("the prefix tree does not name block {}", id));
    }
  }
  if (listed != idle_ || counted != idle_) return Internal("the idle blocks do not add up");
  return OkStatus();
}

}  // namespace lockstep
