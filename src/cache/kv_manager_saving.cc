// What is saved elsewhere and comes back: the part of KvManager that deals with a PrefixStore's
// names. Who computes, copies and waits is the engine (engine/prefix_transfer.h).
#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "cache/kv_manager.h"

namespace lockstep {

void KvManager::QueueToSave(PrefixNode* node) {
  if (save_identity_.empty() || node->parent == nullptr || node->hidden) return;
  tree_.Queue(node);
}

void KvManager::StopPassing(Slot* slot) {
  if (slot->passing != nullptr) --slot->passing->passing;
  slot->passing = nullptr;
}

void KvManager::Ban(PrefixNode* node) {
  tree_.Hide(node);
  if (!node->digest) return;  // without a name nobody has saved it
  try {
    banned_.push_back(*node->digest);
  } catch (const std::bad_alloc&) {
    // It stays where it is saved: computed again it would be the same bytes.
  }
}

std::vector<ChainDigest> KvManager::TakeBanned() { return std::exchange(banned_, {}); }

// From the last node above that has its name, or the root, down.
const ChainDigest& KvManager::DigestOf(PrefixNode* node) {
  std::vector<PrefixNode*> unnamed;
  PrefixNode* above = node;
  while (!above->digest && above->parent != nullptr) {
    unnamed.push_back(above);
    above = above->parent;
  }
  if (!above->digest) above->digest = ChainRoot(save_identity_, above->name);
  for (auto at = unnamed.rbegin(); at != unnamed.rend(); ++at) {
    (*at)->digest = ChainNext(*(*at)->parent->digest, (*at)->tokens);
  }
  return *node->digest;
}

std::vector<KvManager::SpanPart> KvManager::NextToSave() {
  std::vector<SpanPart> parts;
  while (PrefixNode* const node = tree_.queued()) {
    bool hidden = false;
    for (const PrefixNode* n = node; n != nullptr; n = n->parent) hidden |= n->hidden;
    for (size_t g = 0; g < groups_.size() && !hidden; ++g) {
      const Group& group = groups_[g];
      // A state that goes when there is a later one is not worth a file.
      if (!group.policy->by_position() && node->passing > 0) continue;
      const auto first = node->blocks.begin() + group.first_entry;
      std::vector<BlockId> blocks(first, first + group.span_blocks);
      if (std::find(blocks.begin(), blocks.end(), kNoBlock) != blocks.end()) continue;
      parts.push_back({DigestOf(node), DigestOf(node->parent), node->depth, static_cast<int32_t>(g),
                       std::move(blocks)});
    }
    if (!parts.empty()) break;
    tree_.Unqueue(node);
  }
  return parts;
}

void KvManager::Saved() {
  LOCKSTEP_CHECK(tree_.queued() != nullptr);
  tree_.Unqueue(tree_.queued());
}

uint64_t KvManager::saved_up_to() const {
  return tree_.queued() == nullptr ? tree_.last_queued() : tree_.queued()->queued - 1;
}

std::vector<ChainDigest> KvManager::SpansToCome(CacheSlot id, std::span<const TokenId> tokens,
                                                int64_t limit) {
  const Slot& slot = slot_at(id);
  const int64_t span = tree_.span_tokens();
  std::vector<ChainDigest> digests;
  if (!slot.shares || slot.computed % span != 0) return digests;
  limit = std::min(limit, static_cast<int64_t>(tokens.size()));
  if (slot.computed + span > limit) return digests;
  digests.reserve(static_cast<size_t>((limit - slot.computed) / span));
  ChainDigest digest = DigestOf(slot.node);
  for (int64_t end = slot.computed + span; end <= limit; end += span) {
    digest = ChainNext(digest, tokens.subspan(static_cast<size_t>(end - span), span));
    digests.push_back(digest);
  }
  return digests;
}

std::vector<KvManager::SpanPart> KvManager::BeginRestore(CacheSlot id, int64_t end,
                                                         std::span<const ChainDigest> digests) {
  Slot& slot = slot_at(id);
  LOCKSTEP_CHECK(slot.admitted && slot.shares && end > slot.computed && end <= slot.tokens);
  const int64_t above = slot.node->depth;
  const int64_t last = end / tree_.span_tokens();
  const auto needed = [&](const Group& group, int64_t depth, int32_t i) {
    if (!group.policy->by_position()) return depth == last;
    const int64_t j = (depth - 1) * group.span_blocks + i;
    return j < group.policy->KeptBlocks() || j >= group.policy->FirstLive(end);
  };
  std::vector<SpanPart> parts;
  ChainDigest parent = DigestOf(slot.node);
  for (int64_t depth = above + 1; depth <= last; ++depth) {
    const ChainDigest& digest = digests[static_cast<size_t>(depth - above - 1)];
    for (size_t g = 0; g < groups_.size(); ++g) {
      bool any = false;
      for (int32_t i = 0; i < groups_[g].span_blocks; ++i) any |= needed(groups_[g], depth, i);
      if (!any) continue;
      parts.push_back({digest, parent, depth, static_cast<int32_t>(g), {}});
      parts.back().blocks.assign(static_cast<size_t>(groups_[g].span_blocks), kNoBlock);
    }
    parent = digest;
  }
  // From here on nothing can fail.
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].policy->by_position()) continue;
    SlideTo(g, &slot, end);
    const auto covered = static_cast<size_t>(end / groups_[g].spec.block_tokens);
    if (slot.blocks[g].size() < covered) slot.blocks[g].resize(covered, kNoBlock);
  }
  for (SpanPart& part : parts) {
    Group& group = groups_[static_cast<size_t>(part.group)];
    std::vector<BlockId>& blocks = slot.blocks[static_cast<size_t>(part.group)];
    for (int32_t i = 0; i < group.span_blocks; ++i) {
      if (!needed(group, part.depth, i)) continue;
      const bool position = group.policy->by_position();
      const int64_t j = position ? (part.depth - 1) * group.span_blocks + i : 1;
      BlockId& block = blocks[static_cast<size_t>(j)];
      // One that is there was taken for a step that failed.
      if (block == kNoBlock) block = group.pool.Take();
      part.blocks[static_cast<size_t>(i)] = block;
    }
  }
  return parts;
}

void KvManager::FinishRestore(CacheSlot id, std::span<const TokenId> tokens) {
  slot_at(id).keep_state = static_cast<int64_t>(tokens.size());
  Commit(id, tokens);
}

void KvManager::GiveUpRestore(CacheSlot id) {
  Slot& slot = slot_at(id);
  PrefixNode* root = slot.node;
  while (root->parent != nullptr) root = root->parent;
  StopPassing(&slot);
  tree_.Pin(root);
  tree_.Unpin(std::exchange(slot.node, root));
  DropAll(&slot);
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].policy->by_position()) slot.blocks[g].assign(2, kNoBlock);
  }
  slot.computed = slot.stop = slot.keep_state = 0;
  slot.own = nullptr;
}

}  // namespace lockstep
