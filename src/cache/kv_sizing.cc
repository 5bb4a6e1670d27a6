#include "cache/kv_sizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

using Blocks = std::vector<int64_t>;  // [group]

bool Fits(const std::vector<CacheGroupSpec>& groups, const Blocks& blocks, int64_t budget) {
  for (size_t g = 0; g < groups.size(); ++g) {
    // Divided, not multiplied: the product could overflow.
    if (blocks[g] > kMost || blocks[g] > budget / groups[g].block_bytes) return false;
    budget -= blocks[g] * groups[g].block_bytes;
  }
  return true;
}

// The largest number in [0, most] that `holds`, which holds for 0 and for no number above one that
// it does not hold for.
template <typename Holds>
int64_t Largest(int64_t most, Holds holds) {
  int64_t low = 0;
  int64_t high = most;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (holds(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

Blocks WorstBlocks(const CachePolicies& policies, int64_t tokens) {
  Blocks blocks;
  for (const auto& policy : policies) blocks.push_back(policy->WorstBlocks(tokens));
  return blocks;
}

// `tokens` spread over `rows` sequences, and room for a single one of `single` tokens.
Blocks SpreadBlocks(const CachePolicies& policies, int64_t tokens, int64_t rows, int64_t single) {
  const int64_t longer = tokens % rows;
  Blocks blocks;
  for (const auto& policy : policies) {
    const int64_t spread = longer * policy->WorstBlocks(tokens / rows + 1) +
                           (rows - longer) * policy->WorstBlocks(tokens / rows);
    blocks.push_back(std::max(spread, policy->WorstBlocks(single)));
  }
  return blocks;
}

}  // namespace

Result<CachePolicies> MakeCachePolicies(const std::vector<CacheGroupSpec>& groups,
                                        int64_t step_tokens) {
  CachePolicies policies;
  for (const CacheGroupSpec& spec : groups) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto policy, MakeCachePolicy(spec, step_tokens));
    policies.push_back(std::move(policy));
  }
  return policies;
}

Result<int64_t> SequenceBytes(const std::vector<CacheGroupSpec>& groups, int64_t tokens,
                              int64_t step_tokens) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CachePolicies policies, MakeCachePolicies(groups, step_tokens));
  int64_t bytes = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    bytes += policies[g]->WorstBlocks(tokens) * groups[g].block_bytes;
  }
  return bytes;
}

Result<PoolSizes> SizePools(const std::vector<CacheGroupSpec>& groups,
                            const CachePolicies& policies, int64_t budget_bytes,
                            const KvOptions& options) {
  const auto fits_alone = [&](int64_t budget) {
    return Largest(options.context, [&](int64_t tokens) {
      return Fits(groups, WorstBlocks(policies, tokens), budget);
    });
  };
  int64_t single = fits_alone(budget_bytes);
  if (single == 0) {
    int64_t smallest = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      smallest += policies[g]->WorstBlocks(1) * groups[g].block_bytes;
    }
    return ResourceExhausted(fmt::format("the KV budget of {} bytes holds no token: the smallest "
                                         "cache of this model takes {} bytes",
                                         budget_bytes, smallest),
                             "kv_bytes");
  }
  // Whether prefixes are kept at all or not: the safe context must not depend on it.
  const int64_t rows = options.rows + std::max(1, options.rows / 4);
  single = std::max<int64_t>(1, fits_alone(budget_bytes / 2));
  const int64_t spread = Largest(rows * kMost, [&](int64_t tokens) {
    return Fits(groups, SpreadBlocks(policies, tokens, rows, single), budget_bytes);
  });
  PoolSizes sizes;
  for (const int64_t blocks : SpreadBlocks(policies, spread, rows, single)) {
    sizes.blocks.push_back(static_cast<int32_t>(blocks));
  }
  sizes.max_tokens = static_cast<int32_t>(Largest(kMost, [&](int64_t tokens) {
    const Blocks blocks = WorstBlocks(policies, tokens);
    return std::equal(blocks.begin(), blocks.end(), sizes.blocks.begin(),
                      [](int64_t need, int32_t have) { return need <= have; });
  }));
  return sizes;
}

int32_t SequencesAtOnce(const CachePolicies& policies, const PoolSizes& sizes, int64_t tokens) {
  int64_t most = kMost;
  for (size_t g = 0; g < policies.size(); ++g) {
    most = std::min(most, sizes.blocks[g] / std::max<int64_t>(1, policies[g]->WorstBlocks(tokens)));
  }
  return static_cast<int32_t>(most);
}

}  // namespace lockstep
