// Who holds which cache blocks: sizes the pools from a byte budget, admits sequences against it,
// grows their block tables, and lets sequences that begin alike share what was computed once.
// Speaks tokens and positions to the scheduler and folds over the model's cache groups; it never
// sees a byte of a cache, a request or a text.
//
// Admission reserves a sequence's worst case in every group, so that an admitted sequence can never
// fail for want of a block. The sum of the worst cases never exceeds the pools, nor the pools the
// budget. What is shared is not deducted: a block that two sequences hold is reserved twice.
//
// Sharing goes by spans: as many tokens as make whole blocks in every group. Once a step that
// computed the last token of a span is committed, its blocks stand in the prefix tree and never
// change again; a block that is not full is never shared. Blocks that nobody holds stay until
// somebody needs one: then the one that was not held for longest goes.
//
// Not thread-safe: the engine's thread alone, the sizes that are fixed at creation excepted
// (budget_bytes, max_tokens, pool_blocks). docs/cache.md has the reasons.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/chain_digest.h"
#include "cache/kv_sizing.h"
#include "cache/policy.h"
#include "cache/prefix_tree.h"
#include "cache/shared_pool.h"
#include "core/cache_spec.h"
#include "core/types.h"

namespace lockstep {

// A sequence's place in the manager; reused after Release.
using CacheSlot = int32_t;

class KvManager {
 public:
  // Errors: kInvalidArgument for a malformed group, kResourceExhausted for a budget that does not
  // hold one token.
  static Result<std::unique_ptr<KvManager>> Create(const std::vector<CacheGroupSpec>& groups,
                                                   int64_t budget_bytes,
                                                   const KvOptions& options = {});

  // The blocks of each group's pool, for Executor::AllocateCache.
  std::vector<int32_t> pool_blocks() const;
  // The most tokens that one sequence may have when it is alone.
  int32_t max_tokens() const { return max_tokens_; }
  // Whether a sequence of `tokens` tokens can be admitted once it is alone.
  bool CanEverFit(int64_t tokens) const { return tokens <= max_tokens_; }

  // Reserves the worst case of a sequence that grows to `tokens` tokens; none: it has to wait.
  // Sequences share with those of the same `name_space` alone. Throws std::bad_alloc, and has then
  // done nothing. REQUIRES: tokens >= 1.
  std::optional<CacheSlot> Admit(int64_t tokens, std::string_view name_space = {});

  // Takes over what others have computed of the beginning of `tokens`, at most `limit` tokens of
  // it. Returns how many of the sequence's tokens are computed now; never fewer than before.
  int64_t Adopt(CacheSlot slot, std::span<const TokenId> tokens, int64_t limit);

  // Whether `slot`, which may adopt up to `limit` tokens, would compute the very span that
  // `other` is computing or about to compute: then it had better wait and adopt it. Where `other`
  // has to stop for that, ChunkEnd says so until its next Adopt.
  bool LearnsFrom(CacheSlot slot, std::span<const TokenId> tokens, int64_t limit, CacheSlot other,
                  std::span<const TokenId> other_tokens);

  // Where a step that would compute a prompt up to `end` had better stop, so that the state there
  // can be kept: at most `end`, more than what is computed. Models without states stop nowhere.
  // `stable`: the prompt's tokens that a longer prompt is likely to begin with.
  int64_t ChunkEnd(CacheSlot slot, int64_t end, int64_t stable);

  // Makes the block tables cover what a step that computes up to `end` reads and writes. Blocks
  // taken for a larger end are kept for later. REQUIRES: end is at most what was admitted, and no
  // more than step_tokens past what is computed.
  void Reserve(CacheSlot slot, int64_t end);

  // One table a cache group. Stays valid until the slot's next call other than const ones.
  std::span<const std::span<const BlockId>> BlockTables(CacheSlot slot) const;

  // `tokens`, all from the first, are computed: gives back what no later step reads, and lets
  // others share what is complete. REQUIRES: Reserve has covered them.
  void Commit(CacheSlot slot, std::span<const TokenId> tokens);

  // Gives back every block and the reservation. With `failed`, what the sequence itself computed is
  // shared with nobody from now on.
  void Release(CacheSlot slot, bool failed = false);

  // Saving and restoring (kv_manager_saving.cc), for a manager that was made with an identity: what
  // is kept has to be copied out before it goes, and what was kept elsewhere can come back.

  // One group's part of a span.
  struct SpanPart {
    ChainDigest digest{};  // of all tokens up to the end of the span
    ChainDigest parent{};  // and up to its beginning
    int64_t depth = 0;     // spans up to its end
    int32_t group = 0;
    // [blocks of the group in a span] or a state; kNoBlock: a restored sequence does not need it.
    std::vector<BlockId> blocks;
  };

  // The oldest span that has something new: its parts that are whole. Empty: there is none. It
  // stays the oldest until Saved says that it was seen to. Throws std::bad_alloc.
  std::vector<SpanPart> NextToSave();
  void Saved();
  uint64_t last_to_save() const { return tree_.last_queued(); }  // numbers of such spans
  // All up to this number were seen to, or are gone.
  uint64_t saved_up_to() const;
  uint64_t never_saved() const { return tree_.lost(); }  // spans that had to go before
  // What nobody may find any more since the last call, because who computed it failed.
  std::vector<ChainDigest> TakeBanned();

  // The names of the spans after those that are computed, up to `limit` tokens; none when nothing
  // can be restored now. Throws std::bad_alloc.
  std::vector<ChainDigest> SpansToCome(CacheSlot slot, std::span<const TokenId> tokens,
                                       int64_t limit);
  // The most tokens that the sequence could go on from, if it had of those spans what
  // `elsewhere` says: bit g of entry i for group g. What is computed now when it is no more.
  int64_t Restorable(CacheSlot slot, std::span<const uint64_t> elsewhere);
  // Takes blocks for all that is needed to go on from `end`, and says what to fill them with, the
  // first spans first; the digests are those of SpansToCome. Until FinishRestore the slot may only
  // be released or give it up. REQUIRES: Restorable said so; nothing was called for the slot since.
  std::vector<SpanPart> BeginRestore(CacheSlot slot, int64_t end,
                                     std::span<const ChainDigest> digests);
  // `tokens` are computed now. REQUIRES: as many as BeginRestore was told, and the blocks filled.
  void FinishRestore(CacheSlot slot, std::span<const TokenId> tokens);
  // Gives back every block: nothing of the sequence is computed any more.
  void GiveUpRestore(CacheSlot slot);

  int64_t budget_bytes() const { return budget_bytes_; }  // of the pools: at most what was asked
  int64_t reserved_bytes() const;
  int64_t used_bytes() const;    // blocks that sequences hold, each counted once
  int64_t cached_bytes() const;  // blocks that are kept and that nobody holds
  uint64_t evictions() const;    // blocks that were kept and had to go
  int64_t span_tokens() const { return tree_.span_tokens(); }

  // Whether pools, reservations, tables and tree agree. O(blocks).
  Status CheckIntegrity() const;

 private:
  struct Group {
    CacheGroupSpec spec;
    std::unique_ptr<CachePolicy> policy;
    SharedPool pool;
    int64_t reserved = 0;     // blocks, over the admitted sequences
    int32_t span_blocks = 0;  // entries of a tree node
    int32_t first_entry = 0;  // of them
  };
  struct Slot {
    bool admitted = false;
    int64_t tokens = 0;                           // admitted worst case
    int64_t computed = 0;                         // committed or adopted
    PrefixNode* node = nullptr;                   // of the last whole span that is computed; pinned
    PrefixNode* own = nullptr;                    // the first node that it has put a block into
    bool shares = false;                          // all whole spans that are computed have nodes
    int64_t stop = 0;                             // where somebody wants to go on from; 0: nowhere
    int64_t keep_state = 0;                       // the state after so many tokens is to stay
    PrefixNode* passing = nullptr;                // has a state that goes when there is a later one
    std::vector<std::vector<BlockId>> blocks;     // [group][entry]
    std::vector<std::span<const BlockId>> table;  // views of the beginning of `blocks`
  };
  // How far down the tree a group's blocks are there without a gap.
  struct Reach {
    int64_t run = 0;      // blocks before the place reached
    bool broken = false;  // one that must stay for good is missing
  };

  KvManager(const std::vector<CacheGroupSpec>& groups, CachePolicies policies,
            const PoolSizes& sizes, const KvOptions& options);

  Slot& slot_at(CacheSlot slot) { return slots_[static_cast<size_t>(slot)]; }
  const Slot& slot_at(CacheSlot slot) const { return slots_[static_cast<size_t>(slot)]; }
  PrefixNode* LongestUsable(const Slot& slot, std::span<const TokenId> tokens, int64_t limit);
  void StartReach(const Slot& slot);
  bool Usable(const PrefixNode* node);
  void TakeOver(Slot* slot, PrefixNode* node);
  void TakeOverBlocks(size_t g, Slot* slot, PrefixNode* node);
  void Share(Slot* slot, std::span<const TokenId> tokens);
  void ShareBlocks(size_t g, Slot* slot, PrefixNode* node);
  void ShareStates(Slot* slot, PrefixNode* node);
  void SlideTo(size_t g, Slot* slot, int64_t end);
  void DropAll(Slot* slot);
  void StopPassing(Slot* slot);
  void QueueToSave(PrefixNode* node);
  const ChainDigest& DigestOf(PrefixNode* node);
  void Ban(PrefixNode* node);
  bool Reaches(size_t g, int64_t depth, const auto& has);

  const std::string save_identity_;
  const bool share_;
  const bool has_states_;
  const int64_t step_tokens_;
  const int32_t max_tokens_;
  PrefixTree tree_;
  std::vector<Group> groups_;
  std::vector<Reach> reach_;  // of LongestUsable and Restorable, [group]
  std::vector<ChainDigest> banned_;
  int64_t budget_bytes_ = 0;
  std::vector<Slot> slots_;
  std::vector<CacheSlot> free_slots_;
};

}  // namespace lockstep
