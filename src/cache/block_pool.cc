#include "cache/block_pool.h"

#include <fmt/format.h>

#include "base/check.h"

namespace lockstep {

BlockPool::BlockPool(int32_t blocks) : refs_(static_cast<size_t>(blocks), 0) {
  free_.reserve(refs_.size());
  for (BlockId id = blocks - 1; id >= 0; --id) free_.push_back(id);
}

BlockId BlockPool::Take() {
  LOCKSTEP_CHECK(!free_.empty());
  const BlockId id = free_.back();
  free_.pop_back();
  refs_[static_cast<size_t>(id)] = 1;
  return id;
}

void BlockPool::Ref(BlockId id) {
  LOCKSTEP_CHECK(refs(id) > 0);
  ++refs_[static_cast<size_t>(id)];
}

void BlockPool::Unref(BlockId id) {
  LOCKSTEP_CHECK(refs(id) > 0);
  if (--refs_[static_cast<size_t>(id)] == 0) free_.push_back(id);
}

Status BlockPool::CheckIntegrity() const {
  std::vector<bool> seen(refs_.size(), false);
  for (const BlockId id : free_) {
    if (id < 0 || id >= size()) return Internal(fmt::format("free list holds foreign id {}", id));
    if (seen[static_cast<size_t>(id)]) return Internal(fmt::format("block {} is free twice", id));
    if (refs(id) != 0) return Internal(fmt::format("block {} is free and held", id));
    seen[static_cast<size_t>(id)] = true;
  }
  for (BlockId id = 0; id < size(); ++id) {
    if (!seen[static_cast<size_t>(id)] && refs(id) <= 0) {
      return Internal(fmt::format("block {} is lost", id));
    }
  }
  return OkStatus();
}

}  // namespace lockstep
