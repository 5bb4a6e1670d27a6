// PrefixTransfer: carries prefixes between the KV cache and a PrefixStore, by way of the executor.
// Blocks that were computed are copied out after a step; a sequence whose prompt begins with what
// the store has is held back while its blocks are read by the store's thread, and filled in between
// steps. What is copied between two steps is bounded, so that running rows do not notice.
//
// A prefix comes back as if the sequence had computed it itself: into its own blocks, of its own
// reservation, and shared from there on.
//
// Not thread-safe: the engine's thread alone. Borrows executor and manager.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "cache/kv_manager.h"
#include "cache/prefix_store.h"
#include "engine/sequence.h"
#include "engine/stats.h"
#include "executor/executor.h"

namespace lockstep {

class PrefixTransfer {
 public:
  PrefixTransfer(Executor* executor, KvManager* kv, std::shared_ptr<PrefixStore> store);

  // Whether the store has more of the sequence's prompt: then it is loading from here on. Asked
  // once a sequence; the next answers are no. REQUIRES: computing its prompt.
  bool Begin(Sequence* sequence);

  // Fills in what was read. A sequence of which all has come is no longer loading; how many tokens
  // such sequences have taken over is added to `adopted`. True: there may be more at once.
  bool TakeIn(int32_t* adopted);

  // Hands the store what is new. True: there may be more at once.
  bool HandOver();

  // The sequence leaves.
  void Forget(const Sequence* sequence);

  // Numbers of spans that are new: given out so far, and seen to.
  uint64_t last_number() const { return kv_->last_to_save(); }
  uint64_t handed_over() const { return kv_->saved_up_to(); }

  const PrefixTransferStats& stats() const { return stats_; }
  PrefixStoreStats store_stats() const { return store_->stats(); }

 private:
  struct Restore {
    uint64_t ticket = 0;
    int64_t end = 0;
    std::vector<KvManager::SpanPart> parts;
    size_t filled = 0;
  };

  bool TryBegin(Sequence* sequence);
  bool FillIn();
  void Finish(Sequence* sequence, int64_t end);
  int64_t BytesOf(const KvManager::SpanPart& part) const;
  Status Fill(const KvManager::SpanPart& part, std::span<const std::byte> bytes);
  Status CopyOut(const KvManager::SpanPart& part);
  void GiveUp(Sequence* sequence);

  Executor* const executor_;
  KvManager* const kv_;
  const std::shared_ptr<PrefixStore> store_;
  std::unordered_map<Sequence*, Restore> restores_;
  std::unordered_map<uint64_t, Sequence*> by_ticket_;
  uint64_t last_ticket_ = 0;
  int32_t adopted_ = 0;  // since the last TakeIn
  PrefixTransferStats stats_;
};

}  // namespace lockstep
