// The policies' arithmetic against sets of positions written down one by one: 100,000 random
// questions each.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "cache/policy.h"

namespace lockstep {
namespace {

// The blocks that a step over [begin, end) touches.
std::set<int64_t> Touched(const CacheGroupSpec& spec, int64_t begin, int64_t end) {
  std::set<int64_t> blocks;
  for (int64_t p = 0; p < end; ++p) {
    const bool read = spec.kind != CacheKind::kWindow || p < spec.sinks || p > begin - spec.window;
    if (read) blocks.insert(p / spec.block_tokens);
  }
  return blocks;
}

void Ask(CacheKind kind, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int n = 0; n < 1000; ++n) {
    CacheGroupSpec spec{kind, static_cast<int32_t>(pick(1, 9)), 1, "bf16"};
    spec.window = static_cast<int32_t>(pick(1, 25));
    spec.sinks = static_cast<int32_t>(pick(0, 1) * pick(0, 12));
    const int64_t step_tokens = pick(1, 20);
    const auto policy = MakeCachePolicy(spec, step_tokens).value();
    ASSERT_TRUE(policy->by_position());
    const int64_t total = pick(1, 90);
    const int64_t worst = policy->WorstBlocks(total);
    ASSERT_LE(worst, policy->WorstBlocks(total + 1));
    ASSERT_EQ(policy->TableBlocks(total), (total - 1) / spec.block_tokens + 1);
    for (int question = 0; question < 100; ++question) {
      const int64_t begin = pick(0, total - 1);
      const int64_t end = std::min(total, begin + pick(1, step_tokens));
      std::set<int64_t> live;
      for (int64_t j = 0; j < policy->TableBlocks(end); ++j) {
        if (j < policy->KeptBlocks() || j >= policy->FirstLive(begin)) live.insert(j);
      }
      const std::set<int64_t> touched = Touched(spec, begin, end);
      ASSERT_TRUE(std::includes(live.begin(), live.end(), touched.begin(), touched.end()));
      // No more than what is touched, but for the next sink's block.
      for (const int64_t j : live) {
        ASSERT_TRUE(touched.count(j) == 1 || j < policy->KeptBlocks()) << j;
      }
      ASSERT_LE(static_cast<int64_t>(live.size()), worst);
    }
  }
}

TEST(CachePolicyProperty, Paged) { Ask(CacheKind::kPaged, 1); }
TEST(CachePolicyProperty, Latent) { Ask(CacheKind::kLatent, 2); }
TEST(CachePolicyProperty, Window) { Ask(CacheKind::kWindow, 3); }

TEST(CachePolicyProperty, AWindowIsReservedToTheBlock) {
  std::mt19937_64 random(4);
  for (int n = 0; n < 2000; ++n) {
    CacheGroupSpec spec{CacheKind::kWindow, static_cast<int32_t>(1 + random() % 9), 1, "bf16"};
    spec.window = static_cast<int32_t>(1 + random() % 25);
    const auto step_tokens = static_cast<int64_t>(1 + random() % 20);
    const auto policy = MakeCachePolicy(spec, step_tokens).value();
    size_t most = 0;
    for (int64_t begin = 0; begin < 200; ++begin) {
      most = std::max(most, Touched(spec, begin, begin + step_tokens).size());
    }
    ASSERT_EQ(policy->WorstBlocks(1000), static_cast<int64_t>(most));
  }
}

TEST(CachePolicyProperty, ARecurrentSequenceHasTwoStates) {
  const CacheGroupSpec spec{CacheKind::kRecurrent, 4, 1, "f32"};
  const auto policy = MakeCachePolicy(spec, 512).value();
  EXPECT_FALSE(policy->by_position());
  for (const int64_t tokens : {1, 2, 1000000}) {
    EXPECT_EQ(policy->WorstBlocks(tokens), 2);
    EXPECT_EQ(policy->TableBlocks(tokens), 2);
  }
}

}  // namespace
}  // namespace lockstep
