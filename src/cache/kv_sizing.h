// How many blocks each cache group's pool gets out of one byte budget. Pure arithmetic;
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/policy.h"
#include "core/cache_spec.h"

namespace lockstep {

struct KvOptions {
  int32_t rows = 1;                 // sequences that are meant to run at once
  int32_t step_tokens = INT32_MAX;  // most tokens that a step computes of one sequence
  int32_t context = INT32_MAX;      // most tokens of a sequence
  bool share_prefixes = true;
  // Set: what is kept is to be saved as well, and can be restored (KvManager); what names there
  // depend on besides tokens (ChainRoot).
  std::string save_identity = {};
};

using CachePolicies = std::vector<std::unique_ptr<CachePolicy>>;

// Errors: as MakeCachePolicy.
Result<CachePolicies> MakeCachePolicies(const std::vector<CacheGroupSpec>& groups,
                                        int64_t step_tokens);

// The most bytes that one sequence of `tokens` tokens holds. Errors: as MakeCachePolicy.
Result<int64_t> SequenceBytes(const std::vector<CacheGroupSpec>& groups, int64_t tokens,
                              int64_t step_tokens);

struct PoolSizes {
  std::vector<int32_t> blocks;  // [group]
  int32_t max_tokens = 0;       // of one sequence that is alone
};

// Pools for as many tokens as the budget holds, spread evenly over options.rows sequences, and a
// quarter more for prefixes that are kept. One sequence alone may be as long as the context, or as
// half of the budget holds: what each takes whatever its length leaves that much to a long one.
// Errors: kResourceExhausted for a budget that does not hold one token.
Result<PoolSizes> SizePools(const std::vector<CacheGroupSpec>& groups,
                            const CachePolicies& policies, int64_t budget_bytes,
                            const KvOptions& options);

// How many sequences of `tokens` tokens the pools hold at once.
int32_t SequencesAtOnce(const CachePolicies& policies, const PoolSizes& sizes, int64_t tokens);

}  // namespace lockstep
