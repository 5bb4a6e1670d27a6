// Who holds which cache blocks: sizes the pools from a byte budget, admits sequences against it,
// and grows their block tables. Speaks tokens and positions to the scheduler and folds over the
// model's cache groups; it never sees a byte of a cache, a request or a text.
//
// Admission reserves a sequence's worst case in every group, so that an admitted sequence can never
// fail for want of a block. The sum of the worst cases never exceeds the pools, nor the pools the
// budget.
//
// Not thread-safe: the engine's thread alone, the sizes that are fixed at creation excepted
// (budget_bytes, max_tokens, pool_blocks).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/block_pool.h"
#include "cache/policy.h"
#include "core/cache_spec.h"
#include "core/types.h"

namespace lockstep {

// A sequence's place in the manager; reused after Release.
using CacheSlot = int32_t;

class KvManager {
 public:
  // Makes pools that hold as many tokens of one sequence as `budget_bytes` allow. Errors:
  // kInvalidArgument for a malformed group, kResourceExhausted for a budget that does not hold one
  // block of each group.
  static Result<std::unique_ptr<KvManager>> Create(const std::vector<CacheGroupSpec>& groups,
                                                   int64_t budget_bytes);

  // The blocks of each group's pool, for Executor::AllocateCache.
  std::vector<int32_t> pool_blocks() const;
  // The most tokens that one sequence may have when it is alone.
  int32_t max_tokens() const { return max_tokens_; }
  // Whether a sequence of `tokens` tokens can be admitted once it is alone.
  bool CanEverFit(int64_t tokens) const { return tokens <= max_tokens_; }

  // Reserves the worst case of a sequence that grows to `tokens` tokens; none: it has to wait.
  // REQUIRES: tokens >= 1.
  std::optional<CacheSlot> Admit(int64_t tokens);

  // Makes the block tables cover exactly [0, end). Blocks taken for a larger end are kept for
  // later. REQUIRES: end is at most what was admitted.
  void Reserve(CacheSlot slot, int64_t end);

  // One table a cache group. Stays valid until the slot's next Reserve or Release.
  std::span<const std::span<const BlockId>> BlockTables(CacheSlot slot) const;

  // Gives back every block and the reservation.
  void Release(CacheSlot slot);

  int64_t budget_bytes() const { return budget_bytes_; }  // of the pools: at most what was asked
  int64_t reserved_bytes() const;
  int64_t used_bytes() const;

  // Whether pools, reservations and tables agree. O(blocks).
  Status CheckIntegrity() const;

 private:
  struct Group {
    CacheGroupSpec spec;
    std::unique_ptr<CachePolicy> policy;
    BlockPool pool;
    int64_t reserved = 0;  // blocks, over the admitted sequences
  };
  struct Slot {
    bool admitted = false;
    int64_t tokens = 0;                           // admitted worst case
    std::vector<std::vector<BlockId>> blocks;     // [group][entry]
    std::vector<std::span<const BlockId>> table;  // views of the beginning of `blocks`
  };

  KvManager(std::vector<Group> groups, int32_t max_tokens);

  std::vector<Group> groups_;
  int32_t max_tokens_;
  int64_t budget_bytes_ = 0;
  std::vector<Slot> slots_;
  std::vector<CacheSlot> free_slots_;
};

}  // namespace lockstep
