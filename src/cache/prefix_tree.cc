#define XXH_INLINE_ALL
#include "cache/prefix_tree.h"

#include <sys/random.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

// So that nobody can prepare prompts whose spans all fall into one bucket. Zeros are as right.
uint64_t RandomSeed() {
  uint64_t seed = 0;
  return getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed) ? seed : 0;
}

}  // namespace

size_t PrefixTree::Hash::operator()(const Key& key) const {
  const uint64_t above = seed ^ reinterpret_cast<uintptr_t>(key.parent);
  return XXH3_64bits_withSeed(key.span.data(), key.span.size_bytes(), above);
}

bool PrefixTree::Equal::Same(const Key& a, const Key& b) {
  return a.parent == b.parent && std::equal(a.span.begin(), a.span.end(), b.span.begin());
}

PrefixTree::PrefixTree(int64_t span_tokens, int64_t span_blocks)
    : span_tokens_(span_tokens), span_blocks_(span_blocks), found_(0, Hash{RandomSeed()}) {}

PrefixNode* PrefixTree::PinRoot(std::string_view name) {
  const std::string key(name);
  auto at = roots_.find(key);
  if (at == roots_.end()) {
    std::list<PrefixNode> made(1);
    PrefixNode* const root = &made.front();
    root->name = key;
    root->self = made.begin();
    at = roots_.emplace(key, root).first;
    nodes_.splice(nodes_.end(), made);
  }
  Pin(at->second);
  return at->second;
}

PrefixNode* PrefixTree::Find(const PrefixNode* parent, std::span<const TokenId> span) const {
  const auto at = found_.find(Key{parent, span});
  return at == found_.end() ? nullptr : *at;
}

PrefixNode* PrefixTree::Add(PrefixNode* parent, std::span<const TokenId> span) {
  LOCKSTEP_CHECK(static_cast<int64_t>(span.size()) == span_tokens_);
  std::list<PrefixNode> made(1);
  PrefixNode* const node = &made.front();
  node->parent = parent;
  node->depth = parent->depth + 1;
  node->tokens.assign(span.begin(), span.end());
  node->blocks.assign(static_cast<size_t>(span_blocks_), kNoBlock);
  node->self = made.begin();
  found_.insert(node);
  nodes_.splice(nodes_.end(), made);
  ++parent->children;
  return node;
}

void PrefixTree::Unpin(PrefixNode* node) {
  LOCKSTEP_CHECK(node->pins > 0);
  --node->pins;
  RemoveIfEmpty(node);
}

void PrefixTree::Put(PrefixNode* node, int32_t entry, BlockId block) {
  BlockId& place = node->blocks[static_cast<size_t>(entry)];
  LOCKSTEP_CHECK(place == kNoBlock);
  place = block;
  ++node->kept;
}

void PrefixTree::Clear(PrefixNode* node, int32_t entry) {
  BlockId& place = node->blocks[static_cast<size_t>(entry)];
  LOCKSTEP_CHECK(place != kNoBlock);
  place = kNoBlock;
  --node->kept;
  RemoveIfEmpty(node);
}

void PrefixTree::Hide(PrefixNode* node) {
  if (std::exchange(node->hidden, true)) return;
  Unqueue(node);
  found_.erase(node);
}

void PrefixTree::Queue(PrefixNode* node) {
  LOCKSTEP_CHECK(node->parent != nullptr && !node->hidden);
  if (node->queued != 0) return;
  node->queued = ++numbers_;
  node->before = last_in_queue_;
  node->after = nullptr;
  (last_in_queue_ == nullptr ? first_queued_ : last_in_queue_->after) = node;
  last_in_queue_ = node;
}

void PrefixTree::Unqueue(PrefixNode* node) {
  if (std::exchange(node->queued, 0) == 0) return;
  (node->before == nullptr ? first_queued_ : node->before->after) = node->after;
  (node->after == nullptr ? last_in_queue_ : node->after->before) = node->before;
}

void PrefixTree::RemoveIfEmpty(PrefixNode* node) {
  while (node != nullptr && node->pins == 0 && node->children == 0 && node->kept == 0) {
    PrefixNode* const parent = node->parent;
    if (parent == nullptr) {
      roots_.erase(node->name);
    } else {
      if (!node->hidden) found_.erase(node);
      lost_ += node->queued != 0;
      Unqueue(node);
      --parent->children;
    }
    nodes_.erase(node->self);
    node = parent;
  }
}

Status PrefixTree::CheckIntegrity() const {
  std::unordered_map<const PrefixNode*, int32_t> children;
  for (const PrefixNode& node : nodes_) {
    if (node.parent != nullptr) ++children[node.parent];
  }
  for (const PrefixNode& node : nodes_) {
    const auto kept = node.blocks.size() - static_cast<size_t>(std::count(
                                               node.blocks.begin(), node.blocks.end(), kNoBlock));
    const auto below = children.find(&node);
    if (kept != static_cast<size_t>(node.kept) ||
        node.children != (below == children.end() ? 0 : below->second)) {
      return Internal("a node of the prefix tree does not count what it has");
    }
    if (node.pins == 0 && node.children == 0 && node.kept == 0) {
      return Internal("a node of the prefix tree is of no use");
    }
  }
  uint64_t number = 0;
  for (const PrefixNode* node = first_queued_; node != nullptr; node = node->after) {
    if (node->hidden || node->queued <= number) return Internal("the queue of nodes is muddled");
    number = node->queued;
  }
  return OkStatus();
}

}  // namespace lockstep
