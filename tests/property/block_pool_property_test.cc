// BlockPool against a map from id to count, 100,000 random operations.
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>

#include "cache/block_pool.h"

namespace lockstep {
namespace {

TEST(BlockPoolProperty, AgreesWithANaiveModel) {
  constexpr int32_t kBlocks = 40;
  std::mt19937_64 random(1);
  BlockPool pool(kBlocks);
  std::map<BlockId, int32_t> model;
  for (int n = 0; n < 100'000; ++n) {
    // Drifts between nearly empty and exhausted.
    const uint64_t choice = random() % 10 + (n / 5000 % 2 == 0 ? 0 : 2);
    if (choice < 5) {
      if (pool.free() > 0) {
        const BlockId id = pool.Take();
        ASSERT_TRUE(id >= 0 && id < kBlocks);
        ASSERT_TRUE(model.emplace(id, 1).second) << "handed out twice: " << id;
      }
    } else if (!model.empty()) {
      const auto entry = std::next(model.begin(), static_cast<int64_t>(random() % model.size()));
      if (choice < 7) {
        pool.Ref(entry->first);
        ++entry->second;
      } else {
        pool.Unref(entry->first);
        if (--entry->second == 0) model.erase(entry);
      }
    }
    ASSERT_EQ(pool.used(), static_cast<int32_t>(model.size()));
    ASSERT_EQ(pool.free(), kBlocks - static_cast<int32_t>(model.size()));
    for (BlockId id = 0; id < kBlocks; ++id) {
      const auto entry = model.find(id);
      ASSERT_EQ(pool.refs(id), entry == model.end() ? 0 : entry->second);
    }
    const Status status = pool.CheckIntegrity();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
}

}  // namespace
}  // namespace lockstep
