#include "cache/kv_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

// The tokens of a span: whole blocks of every group. Too many for anybody: 0.
int64_t SpanTokens(const std::vector<CacheGroupSpec>& groups) {
  int64_t span = 1;
  for (const CacheGroupSpec& spec : groups) {
    span = std::lcm(span, int64_t{spec.block_tokens});
    if (span > std::numeric_limits<int32_t>::max()) return 0;
  }
  return span;
}

int64_t SpanBlocks(const CacheGroupSpec& spec, const CachePolicy& policy, int64_t span) {
  return policy.by_position() ? span / spec.block_tokens : 1;
}

int64_t SpanBlocks(const std::vector<CacheGroupSpec>& groups, const CachePolicies& policies,
                   int64_t span) {
  int64_t blocks = 0;
  for (size_t g = 0; g < groups.size(); ++g) blocks += SpanBlocks(groups[g], *policies[g], span);
  return blocks;
}

}  // namespace

Result<std::unique_ptr<KvManager>> KvManager::Create(const std::vector<CacheGroupSpec>& groups,
                                                     int64_t budget_bytes,
                                                     const KvOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(CachePolicies policies, MakeCachePolicies(groups, options.step_tokens));
  LOCKSTEP_ASSIGN_OR_RETURN(const PoolSizes sizes,
                            SizePools(groups, policies, budget_bytes, options));
  return std::unique_ptr<KvManager>(new KvManager(groups, std::move(policies), sizes, options));
}

KvManager::KvManager(const std::vector<CacheGroupSpec>& groups, CachePolicies policies,
                     const PoolSizes& sizes, const KvOptions& options)
    : save_identity_(options.save_identity),
      share_(options.share_prefixes && SpanTokens(groups) > 0),
      has_states_(std::any_of(policies.begin(), policies.end(),
                              [](const auto& policy) { return !policy->by_position(); })),
      step_tokens_(options.step_tokens),
      max_tokens_(sizes.max_tokens),
      tree_(SpanTokens(groups), SpanBlocks(groups, policies, SpanTokens(groups))),
      reach_(groups.size()) {
  int32_t entries = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto in_span =
        static_cast<int32_t>(SpanBlocks(groups[g], *policies[g], tree_.span_tokens()));
    groups_.push_back({groups[g], std::move(policies[g]), SharedPool(sizes.blocks[g], &tree_), 0,
                       in_span, entries});
    entries += in_span;
    budget_bytes_ += sizes.blocks[g] * groups[g].block_bytes;
  }
}

std::vector<int32_t> KvManager::pool_blocks() const {
  std::vector<int32_t> blocks;
  for (const Group& group : groups_) blocks.push_back(group.pool.size());
  return blocks;
}

std::optional<CacheSlot> KvManager::Admit(int64_t tokens, std::string_view name_space) {
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
  Slot& slot = slot_at(id);
  // The tables never move while the sequence grows, and a step allocates nothing for them.
  for (size_t g = 0; g < groups_.size(); ++g) {
    slot.blocks[g].reserve(static_cast<size_t>(groups_[g].policy->TableBlocks(tokens)));
  }
  if (share_) slot.node = tree_.PinRoot(name_space);
  // From here on nothing can fail.
  free_slots_.pop_back();
  slot.admitted = true;
  slot.tokens = tokens;
  slot.computed = 0;
  slot.own = slot.passing = nullptr;
  slot.shares = share_;
  slot.stop = slot.keep_state = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].reserved += groups_[g].policy->WorstBlocks(tokens);
    if (!groups_[g].policy->by_position()) slot.blocks[g].assign(2, kNoBlock);
  }
  return id;
}

void KvManager::Reserve(CacheSlot id, int64_t end) {
  Slot& slot = slot_at(id);
  LOCKSTEP_CHECK(slot.admitted && end <= slot.tokens && end - slot.computed <= step_tokens_);
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    std::vector<BlockId>& blocks = slot.blocks[g];
    if (group.policy->by_position()) {
      const auto wanted = static_cast<size_t>(group.policy->TableBlocks(end));
      while (blocks.size() < wanted) blocks.push_back(group.pool.Take());
      // A step that failed may have had a longer span.
      slot.table[g] = std::span(blocks).first(wanted);
    } else {
      if (blocks[1] == kNoBlock) blocks[1] = group.pool.Take();
      slot.table[g] = blocks;
    }
  }
}

std::span<const std::span<const BlockId>> KvManager::BlockTables(CacheSlot id) const {
  return slot_at(id).table;
}

void KvManager::Commit(CacheSlot id, std::span<const TokenId> tokens) {
  Slot& slot = slot_at(id);
  const auto end = static_cast<int64_t>(tokens.size());
  LOCKSTEP_CHECK(slot.admitted && end >= slot.computed && end <= slot.tokens);
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].policy->by_position()) continue;
    std::vector<BlockId>& states = slot.blocks[g];
    if (states[0] != kNoBlock) groups_[g].pool.Drop(states[0]);
    states[0] = std::exchange(states[1], kNoBlock);
  }
  slot.computed = end;
  if (slot.shares) Share(&slot, tokens);
  for (size_t g = 0; g < groups_.size(); ++g) SlideTo(g, &slot, end);
}

// Gives back what only positions before `end` read.
void KvManager::SlideTo(size_t g, Slot* slot, int64_t end) {
  Group& group = groups_[g];
  if (!group.policy->by_position()) return;
  std::vector<BlockId>& blocks = slot->blocks[g];
  const int64_t live = std::min(group.policy->FirstLive(end), static_cast<int64_t>(blocks.size()));
  // Backwards to where it stopped last time.
  for (int64_t j = live - 1; j >= group.policy->KeptBlocks(); --j) {
    BlockId& block = blocks[static_cast<size_t>(j)];
    if (block == kNoBlock) break;
    group.pool.Drop(std::exchange(block, kNoBlock));
  }
}

void KvManager::Release(CacheSlot id, bool failed) {
  Slot& slot = slot_at(id);
  LOCKSTEP_CHECK(slot.admitted);
  // The last states are not passed any more.
  PrefixNode* const last = slot.passing;
  StopPassing(&slot);
  if (last != nullptr && !failed) QueueToSave(last);
  if (failed && slot.own != nullptr) {
    // Every node on the way, for those that stand between.
    for (PrefixNode* node = slot.node; node != slot.own; node = node->parent) Ban(node);
    Ban(slot.own);
  }
  DropAll(&slot);
  for (Group& group : groups_) group.reserved -= group.policy->WorstBlocks(slot.tokens);
  if (share_) tree_.Unpin(std::exchange(slot.node, nullptr));
  slot.admitted = false;
  slot.tokens = 0;
  free_slots_.push_back(id);
}

void KvManager::DropAll(Slot* slot) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<BlockId>& blocks = slot->blocks[g];
    // The last ones first: without a prefix's beginning its end is of no use.
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      if (*block != kNoBlock) groups_[g].pool.Drop(*block);
    }
    blocks.clear();
    slot->table[g] = {};
  }
}

int64_t KvManager::reserved_bytes() const {
  int64_t bytes = 0;
  for (const Group& group : groups_) bytes += group.reserved * group.spec.block_bytes;
  return bytes;
}

int64_t KvManager::used_bytes() const {
  int64_t bytes = 0;
  for (const Group& group : groups_) bytes += group.pool.held() * group.spec.block_bytes;
  return bytes;
}

int64_t KvManager::cached_bytes() const {
  int64_t bytes = 0;
  for (const Group& group : groups_) bytes += group.pool.idle() * group.spec.block_bytes;
  return bytes;
}

uint64_t KvManager::evictions() const {
  uint64_t evictions = 0;
  for (const Group& group : groups_) evictions += group.pool.evictions();
  return evictions;
}

Status KvManager::CheckIntegrity() const {
  LOCKSTEP_RETURN_IF_ERROR(tree_.CheckIntegrity());
  int64_t places = 0;  // in the tree, of sequences
  for (const Slot& slot : slots_) places += slot.node != nullptr;
  for (const PrefixNode& node : tree_.nodes()) places -= node.pins;
  if (places != 0) return Internal("the pins of the prefix tree do not add up");
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    LOCKSTEP_RETURN_IF_ERROR(group.pool.CheckIntegrity());
    std::vector<int32_t> holders(static_cast<size_t>(group.pool.size()), 0);
    int64_t reserved = 0;
    for (const Slot& slot : slots_) {
      const int64_t worst = slot.admitted ? group.policy->WorstBlocks(slot.tokens) : 0;
      int64_t held = 0;
      for (const BlockId id : slot.blocks[g]) {
        if (id == kNoBlock) continue;
        ++held;
        ++holders[static_cast<size_t>(id)];
      }
      if (held > worst) return Internal("a sequence holds more blocks than it reserved");
      reserved += worst;
    }
    if (reserved != group.reserved || reserved > group.pool.size()) {
      return Internal("the reservations do not add up");
    }
    for (BlockId id = 0; id < group.pool.size(); ++id) {
      if (holders[static_cast<size_t>(id)] != group.pool.holders(id)) {
        return Internal(fmt::format("block {} has {} holders and counts {}", id,
                                    holders[static_cast<size_t>(id)], group.pool.holders(id)));
      }
    }
  }
  return OkStatus();
}

}  // namespace lockstep
