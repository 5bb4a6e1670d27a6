// PrefixTree: which beginnings of token sequences have their cache blocks kept. A node stands for a
// span of `span_tokens` tokens after all the spans above it, within a namespace; it names the
// blocks that hold those positions, as far as they are still there. Spans are compared token by
// token, so that no clash of hashes can pass for a hit. Knows no policies, counts no references.
//
// A node goes when nothing is left in it, below it, or at it (a pin). Pointers to nodes stay valid
// that long.
//
// Not thread-safe: the engine's thread alone.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "cache/chain_digest.h"
#include "core/types.h"

namespace lockstep {

// Changed by PrefixTree alone.
struct PrefixNode {
  PrefixNode* parent = nullptr;  // null: the root of a namespace
  int64_t depth = 0;             // spans from the root down to the end of this one
  std::vector<TokenId> tokens;   // [span_tokens]; a root has none
  std::vector<BlockId> blocks;   // [span_blocks]; kNoBlock where none is kept
  int32_t kept = 0;              // entries of `blocks` that are not kNoBlock
  int32_t children = 0;
  int32_t pins = 0;
  bool hidden = false;
  std::string name;  // of a root: its namespace
  std::list<PrefixNode>::iterator self;

  // What is to be saved (Queue).
  uint64_t queued = 0;  // its number in the queue; 0: it is not there
  PrefixNode* before = nullptr;
  PrefixNode* after = nullptr;
  int32_t passing = 0;                // sequences that will let its states go
  std::optional<ChainDigest> digest;  // once somebody asked (KvManager)
};

class PrefixTree {
 public:
  // `span_blocks`: entries of PrefixNode::blocks.
  PrefixTree(int64_t span_tokens, int64_t span_blocks);
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  int64_t span_tokens() const { return span_tokens_; }

  // The root of a namespace, pinned. Throws std::bad_alloc.
  PrefixNode* PinRoot(std::string_view name);

  // The child that stands for `span`; null when there is none, or when it is hidden.
  PrefixNode* Find(const PrefixNode* parent, std::span<const TokenId> span) const;
  // A new child. Throws std::bad_alloc, and has then done nothing. REQUIRES: Find gives none;
  // `parent` is pinned.
  PrefixNode* Add(PrefixNode* parent, std::span<const TokenId> span);

  void Pin(PrefixNode* node) { ++node->pins; }
  void Unpin(PrefixNode* node);

  // REQUIRES: the entry is kNoBlock (Put), or is not (Clear).
  void Put(PrefixNode* node, int32_t entry, BlockId block);
  void Clear(PrefixNode* node, int32_t entry);

  // The queue of nodes that have something new. A node goes out of it when it is removed or hidden.
  // Queue leaves one that is there where it is. REQUIRES: not a root, not hidden.
  void Queue(PrefixNode* node);
  void Unqueue(PrefixNode* node);  // nothing when it is not there
  PrefixNode* queued() const { return first_queued_; }
  uint64_t last_queued() const { return numbers_; }  // numbers ascend from 1
  uint64_t lost() const { return lost_; }            // nodes that were removed from the queue

  // Nobody finds the node any more; what is below it only from there. REQUIRES: not a root.
  void Hide(PrefixNode* node);

  const std::list<PrefixNode>& nodes() const { return nodes_; }  // of all namespaces, in no order

  // Whether every node counts what it has and is there for a reason. O(nodes).
  Status CheckIntegrity() const;

 private:
  struct Key {
    const PrefixNode* parent;
    std::span<const TokenId> span;
  };
  static Key KeyOf(const PrefixNode* node) { return {node->parent, node->tokens}; }
  static const Key& KeyOf(const Key& key) { return key; }
  struct Hash {
    using is_transparent = void;
    uint64_t seed;
    size_t operator()(const Key& key) const;
    size_t operator()(const PrefixNode* node) const { return (*this)(KeyOf(node)); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return Same(KeyOf(a), KeyOf(b)); }
    static bool Same(const Key& a, const Key& b);
  };

  void RemoveIfEmpty(PrefixNode* node);

  const int64_t span_tokens_;
  const int64_t span_blocks_;
  std::list<PrefixNode> nodes_;
  std::unordered_set<PrefixNode*, Hash, Equal> found_;  // all but roots and hidden ones
  std::unordered_map<std::string, PrefixNode*> roots_;
  PrefixNode* first_queued_ = nullptr;
  PrefixNode* last_in_queue_ = nullptr;
  uint64_t numbers_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace lockstep
