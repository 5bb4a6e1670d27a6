// What sequences that begin alike share: the part of KvManager that reads and writes the tree.
#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "cache/kv_manager.h"

namespace lockstep {

int64_t KvManager::Adopt(CacheSlot id, std::span<const TokenId> tokens, int64_t limit) {
  Slot& slot = slot_at(id);
  LOCKSTEP_CHECK(slot.admitted);
  slot.stop = 0;
  // Within a span it has blocks of its own that are not full.
  if (slot.shares && slot.computed % tree_.span_tokens() == 0) {
    PrefixNode* const node = LongestUsable(slot, tokens, limit);
    if (node != slot.node) TakeOver(&slot, node);
  }
  return slot.computed;
}

// The deepest node that every group can go on from; at least the slot's own.
PrefixNode* KvManager::LongestUsable(const Slot& slot, std::span<const TokenId> tokens,
                                     int64_t limit) {
  const int64_t span = tree_.span_tokens();
  limit = std::min(limit, static_cast<int64_t>(tokens.size()));
  StartReach(slot);
  PrefixNode* longest = slot.node;
  PrefixNode* node = slot.node;
  for (int64_t end = slot.computed + span; end <= limit; end += span) {
    node = tree_.Find(node, tokens.subspan(static_cast<size_t>(end - span), span));
    if (node == nullptr) break;
    if (Usable(node)) longest = node;
  }
  return longest;
}

void KvManager::StartReach(const Slot& slot) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int64_t held =
        slot.computed / groups_[g].spec.block_tokens - groups_[g].policy->FirstLive(slot.computed);
    reach_[g] = {held, false};
  }
}

// Whether group g could go on after span `depth`, of which it has entry i if `has(i)`. REQUIRES:
// StartReach, then asked of each span on the way.
bool KvManager::Reaches(size_t g, int64_t depth, const auto& has) {
  const Group& group = groups_[g];
  if (!group.policy->by_position()) return has(0);
  Reach& reach = reach_[g];
  for (int32_t i = 0; i < group.span_blocks; ++i) {
    const int64_t j = (depth - 1) * group.span_blocks + i;
    reach.run = has(i) ? reach.run + 1 : 0;
    reach.broken |= !has(i) && j < group.policy->KeptBlocks();
  }
  const int64_t end = depth * tree_.span_tokens();
  const int64_t needed = end / group.spec.block_tokens - group.policy->FirstLive(end);
  return !reach.broken && reach.run >= needed;
}

// Whether a sequence could go on after the node's span.
bool KvManager::Usable(const PrefixNode* node) {
  bool usable = true;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const BlockId* const blocks = node->blocks.data() + groups_[g].first_entry;
    usable &= Reaches(g, node->depth, [&](int32_t i) { return blocks[i] != kNoBlock; });
  }
  return usable;
}

int64_t KvManager::Restorable(CacheSlot id, std::span<const uint64_t> elsewhere) {
  const Slot& slot = slot_at(id);
  StartReach(slot);
  int64_t longest = slot.computed;
  int64_t depth = slot.node->depth;
  for (const uint64_t there : elsewhere) {
    ++depth;
    bool usable = there != 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      usable &= Reaches(g, depth, [&](int32_t) { return (there >> g & 1) != 0; });
    }
    if (usable) longest = depth * tree_.span_tokens();
  }
  return longest;
}

void KvManager::TakeOver(Slot* slot, PrefixNode* node) {
  for (size_t g = 0; g < groups_.size(); ++g) TakeOverBlocks(g, slot, node);
  // Of use: so it should be where things are saved, and stay there.
  for (PrefixNode* n = node; n != slot->node; n = n->parent) QueueToSave(n);
  tree_.Pin(node);
  tree_.Unpin(slot->node);
  slot->node = node;
  slot->computed = node->depth * tree_.span_tokens();
}

void KvManager::TakeOverBlocks(size_t g, Slot* slot, PrefixNode* node) {
  Group& group = groups_[g];
  std::vector<BlockId>& blocks = slot->blocks[g];
  if (!group.policy->by_position()) {
    if (blocks[0] != kNoBlock) group.pool.Drop(blocks[0]);
    blocks[0] = node->blocks[static_cast<size_t>(group.first_entry)];
    group.pool.Hold(blocks[0]);
    return;
  }
  const int64_t end = node->depth * tree_.span_tokens();
  const int64_t first_live = group.policy->FirstLive(end);
  SlideTo(g, slot, end);
  const auto covered = static_cast<size_t>(end / group.spec.block_tokens);
  if (blocks.size() < covered) blocks.resize(covered, kNoBlock);
  for (const PrefixNode* n = node; n != slot->node; n = n->parent) {
    for (int32_t i = 0; i < group.span_blocks; ++i) {
      const int64_t j = (n->depth - 1) * group.span_blocks + i;
      BlockId& block = blocks[static_cast<size_t>(j)];
      // Taken for a step that failed.
      if (block != kNoBlock) group.pool.Drop(std::exchange(block, kNoBlock));
      if (j >= group.policy->KeptBlocks() && j < first_live) continue;
      block = n->blocks[static_cast<size_t>(group.first_entry + i)];
      group.pool.Hold(block);
    }
  }
}

bool KvManager::LearnsFrom(CacheSlot id, std::span<const TokenId> tokens, int64_t limit,
                           CacheSlot other_id, std::span<const TokenId> other_tokens) {
  const Slot& slot = slot_at(id);
  Slot& other = slot_at(other_id);
  const int64_t span = tree_.span_tokens();
  if (!slot.shares || !other.shares || slot.node != other.node) return false;
  if (slot.computed % span != 0) return false;
  limit = std::min(
      {limit, static_cast<int64_t>(tokens.size()), static_cast<int64_t>(other_tokens.size())});
  // What the next step cannot reach is looked at when it can; but for a state has to be planned.
  const int64_t reach = std::max(slot.computed + span, other.computed + step_tokens_);
  if (!has_states_) limit = std::min(limit, reach);
  int64_t common = slot.computed;
  while (common + span <= limit &&
         std::equal(tokens.begin() + common, tokens.begin() + common + span,
                    other_tokens.begin() + common)) {
    common += span;
  }
  if (common <= other.computed) return false;
  other.stop = other.stop == 0 ? common : std::min(other.stop, common);
  return true;
}

int64_t KvManager::ChunkEnd(CacheSlot id, int64_t end, int64_t stable) {
  Slot& slot = slot_at(id);
  if (!slot.shares) return end;
  // Who turns off there shall not wait for the rest.
  if (!has_states_) return slot.stop > slot.computed ? std::min(end, slot.stop) : end;
  const int64_t span = tree_.span_tokens();
  for (const int64_t stop : {stable / span * span, slot.stop}) {
    if (stop <= slot.computed || stop > end) continue;
    end = slot.keep_state = stop;
  }
  // Somebody may be waiting for the spans before `end`.
  const int64_t whole = end / span * span;
  return whole > slot.computed ? whole : end;
}

// Gives the spans that are complete now their places in the tree.
void KvManager::Share(Slot* slot, std::span<const TokenId> tokens) {
  const int64_t span = tree_.span_tokens();
  while ((slot->node->depth + 1) * span <= slot->computed) {
    const auto next = tokens.subspan(static_cast<size_t>(slot->node->depth * span), span);
    PrefixNode* child = tree_.Find(slot->node, next);
    if (child == nullptr) {
      try {
        child = tree_.Add(slot->node, next);
      } catch (const std::bad_alloc&) {
        slot->shares = false;  // from here on it computes for itself alone
        return;
      }
    }
    tree_.Pin(child);
    tree_.Unpin(slot->node);
    slot->node = child;
    for (size_t g = 0; g < groups_.size(); ++g) ShareBlocks(g, slot, child);
  }
  if (has_states_ && slot->node->depth * span == slot->computed) ShareStates(slot, slot->node);
}

// Keeps the states after the node's span. Those on the way to one that is meant to stay do not.
void KvManager::ShareStates(Slot* slot, PrefixNode* node) {
  bool put = false;
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    if (group.policy->by_position()) continue;
    const auto entry = static_cast<size_t>(group.first_entry);
    if (node->blocks[entry] == kNoBlock) {
      group.pool.Keep(slot->blocks[g][0], node, group.first_entry);
      if (slot->own == nullptr) slot->own = node;
      put = true;
    }
    const BlockId passed = slot->passing == nullptr ? kNoBlock : slot->passing->blocks[entry];
    if (passed != kNoBlock && group.pool.idle(passed)) group.pool.Forget(passed);
  }
  StopPassing(slot);
  if (put && slot->keep_state != slot->computed) {
    slot->passing = node;
    ++node->passing;
  }
  QueueToSave(node);
}

void KvManager::ShareBlocks(size_t g, Slot* slot, PrefixNode* node) {
  Group& group = groups_[g];
  if (!group.policy->by_position()) return;
  for (int32_t i = 0; i < group.span_blocks; ++i) {
    const int32_t entry = group.first_entry + i;
    const int64_t j = (node->depth - 1) * group.span_blocks + i;
    BlockId& mine = slot->blocks[g][static_cast<size_t>(j)];
    const BlockId known = node->blocks[static_cast<size_t>(entry)];
    if (mine == kNoBlock || mine == known) continue;
    if (known == kNoBlock) {
      group.pool.Keep(mine, node, entry);
      QueueToSave(node);
      if (slot->own == nullptr) slot->own = node;
    } else {
      // Somebody else computed the same: the same bytes, so one of them is enough.
      group.pool.Hold(known);
      group.pool.Drop(std::exchange(mine, known));
    }
  }
}

}  // namespace lockstep
