#include "cache/kv_manager.h"

#include <fmt/format.h>

#include <limits>

#include "base/check.h"

namespace lockstep {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

using Policies = std::vector<std::unique_ptr<CachePolicy>>;

bool Fits(const std::vector<CacheGroupSpec>& specs, const Policies& policies, int64_t tokens,
          int64_t budget) {
  for (size_t g = 0; g < specs.size(); ++g) {
    const int64_t blocks = policies[g]->WorstBlocks(tokens);
    // Divided, not multiplied: the product could overflow.
    if (blocks > kMost || blocks > budget / specs[g].block_bytes) return false;
    budget -= blocks * specs[g].block_bytes;
  }
  return true;
}

// The largest number of tokens that fits, 0 when none does.
int64_t LargestFit(const std::vector<CacheGroupSpec>& specs, const Policies& policies,
                   int64_t budget) {
  int64_t low = 0;
  int64_t high = kMost;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (Fits(specs, policies, middle, budget)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

Result<std::unique_ptr<KvManager>> KvManager::Create(const std::vector<CacheGroupSpec>& groups,
                                                     int64_t budget_bytes) {
  Policies policies;
  int64_t smallest = 0;
  for (const CacheGroupSpec& spec : groups) {
    if (spec.block_tokens <= 0 || spec.block_bytes <= 0) {
      return InvalidArgument("a cache group needs positive block sizes", "cache_groups");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(auto policy, MakeCachePolicy(spec));
    smallest += policy->WorstBlocks(1) * spec.block_bytes;
    policies.push_back(std::move(policy));
  }
  const int64_t tokens = LargestFit(groups, policies, budget_bytes);
  if (tokens == 0) {
    return ResourceExhausted(fmt::format("the KV budget of {} bytes holds no token: the smallest "
                                         "cache of this model takes {} bytes",
                                         budget_bytes, smallest),
                             "kv_bytes");
  }
  std::vector<Group> made;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto blocks = static_cast<int32_t>(policies[g]->WorstBlocks(tokens));
    made.push_back({groups[g], std::move(policies[g]), BlockPool(blocks), 0});
  }
  return std::unique_ptr<KvManager>(new KvManager(std::move(made), static_cast<int32_t>(tokens)));
}

KvManager::KvManager(std::vector<Group> groups, int32_t max_tokens)
    : groups_(std::move(groups)), max_tokens_(max_tokens) {
  for (const Group& group : groups_) budget_bytes_ += group.pool.size() * group.spec.block_bytes;
}

std::vector<int32_t> KvManager::pool_blocks() const {
  std::vector<int32_t> blocks;
  for (const Group& group : groups_) blocks.push_back(group.pool.size());
  return blocks;
}

std::optional<CacheSlot> KvManager::Admit(int64_t tokens) {
  for (const Group& group : groups_) {
    if (group.reserved + group.policy->WorstBlocks(tokens) > group.pool.size()) return {};
  }
  if (free_slots_.empty()) {
    Slot fresh;
    fresh.blocks.resize(groups_.size());
    fresh.table.resize(groups_.size());
    free_slots_.reserve(slots_.size() + 1);
    slots_.push_back(std::move(fresh));
    free_slots_.push_back(static_cast<CacheSlot>(slots_.size() - 1));
  }
  const CacheSlot id = free_slots_.back();
  Slot& slot = slots_[static_cast<size_t>(id)];
  // The tables never move while the sequence grows, and a step allocates nothing. From here on
  // nothing can fail.
  for (size_t g = 0; g < groups_.size(); ++g) {
    slot.blocks[g].reserve(static_cast<size_t>(groups_[g].policy->TableBlocks(tokens)));
  }
  free_slots_.pop_back();
  slot.admitted = true;
  slot.tokens = tokens;
  for (Group& group : groups_) group.reserved += group.policy->WorstBlocks(tokens);
  return id;
}

void KvManager::Reserve(CacheSlot id, int64_t end) {
  Slot& slot = slots_[static_cast<size_t>(id)];
  LOCKSTEP_CHECK(slot.admitted && end <= slot.tokens);
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<BlockId>& blocks = slot.blocks[g];
    const auto wanted = static_cast<size_t>(groups_[g].policy->TableBlocks(end));
    while (blocks.size() < wanted) blocks.push_back(groups_[g].pool.Take());
    // A step that failed may have had a longer span.
    slot.table[g] = std::span(blocks).first(wanted);
  }
}

std::span<const std::span<const BlockId>> KvManager::BlockTables(CacheSlot id) const {
  return slots_[static_cast<size_t>(id)].table;
}

void KvManager::Release(CacheSlot id) {
  Slot& slot = slots_[static_cast<size_t>(id)];
  LOCKSTEP_CHECK(slot.admitted);
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const BlockId block : slot.blocks[g]) groups_[g].pool.Unref(block);
    slot.blocks[g].clear();
    slot.table[g] = {};
    groups_[g].reserved -= groups_[g].policy->WorstBlocks(slot.tokens);
  }
  slot.admitted = false;
  slot.tokens = 0;
  free_slots_.push_back(id);
}

int64_t KvManager::reserved_bytes() const {
  int64_t bytes = 0;
  for (const Group& group : groups_) bytes += group.reserved * group.spec.block_bytes;
  return bytes;
}

int64_t KvManager::used_bytes() const {
  int64_t bytes = 0;
  for (const Group& group : groups_) bytes += group.pool.used() * group.spec.block_bytes;
  return bytes;
}

Status KvManager::CheckIntegrity() const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    LOCKSTEP_RETURN_IF_ERROR(group.pool.CheckIntegrity());
    std::vector<int32_t> held(static_cast<size_t>(group.pool.size()), 0);
    int64_t reserved = 0;
    for (const Slot& slot : slots_) {
      const int64_t worst = slot.admitted ? group.policy->WorstBlocks(slot.tokens) : 0;
      if (static_cast<int64_t>(slot.blocks[g].size()) > worst) {
        return Internal("a sequence holds more blocks than it reserved");
      }
      reserved += worst;
      for (const BlockId id : slot.blocks[g]) ++held[static_cast<size_t>(id)];
    }
    if (reserved != group.reserved || reserved > group.pool.size()) {
      return Internal("the reservations do not add up");
    }
    for (BlockId id = 0; id < group.pool.size(); ++id) {
      if (held[static_cast<size_t>(id)] != group.pool.refs(id)) {
        return Internal(fmt::format("block {} has {} holders and {} references", id,
                                    held[static_cast<size_t>(id)], group.pool.refs(id)));
      }
    }
  }
  return OkStatus();
}

}  // namespace lockstep
