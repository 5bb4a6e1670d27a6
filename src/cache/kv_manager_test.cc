#include "cache/kv_manager.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace lockstep {
namespace {

// Two groups of unlike block sizes: 4 tokens of 100 bytes, 16 tokens of 1000 bytes.
std::vector<CacheGroupSpec> TwoGroups() {
  return {{CacheKind::kPaged, 4, 100, "bf16"}, {CacheKind::kPaged, 16, 1000, "bf16"}};
}

TEST(KvManager, FillsTheBudgetAndNeverExceedsIt) {
  // 32 tokens take 8 * 100 + 2 * 1000 = 2800; 36 would need a third large block.
  auto kv = KvManager::Create(TwoGroups(), 3000);
  ASSERT_TRUE(kv.ok()) << kv.status().ToString();
  EXPECT_EQ((*kv)->pool_blocks(), (std::vector<int32_t>{8, 2}));
  EXPECT_EQ((*kv)->max_tokens(), 32);
  EXPECT_EQ((*kv)->budget_bytes(), 2800);
  EXPECT_TRUE((*kv)->CanEverFit(32));
  EXPECT_FALSE((*kv)->CanEverFit(33));
}

TEST(KvManager, ABudgetThatHoldsNothingIsRefused) {
  auto kv = KvManager::Create(TwoGroups(), 1099);
  ASSERT_FALSE(kv.ok());
  EXPECT_EQ(kv.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(kv.status().message().find("1100"), std::string::npos) << kv.status().message();
  EXPECT_TRUE(KvManager::Create(TwoGroups(), 1100).ok());
}

TEST(KvManager, MalformedGroupsAreRefused) {
  for (const CacheGroupSpec& spec : {CacheGroupSpec{CacheKind::kPaged, 0, 100, "bf16"},
                                     CacheGroupSpec{CacheKind::kPaged, 4, 0, "bf16"}}) {
    auto kv = KvManager::Create({spec}, 1000);
    ASSERT_FALSE(kv.ok());
    EXPECT_EQ(kv.status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(KvManager, AHugeBudgetDoesNotOverflow) {
  // Large blocks keep the pool's own bookkeeping small.
  auto kv = KvManager::Create({{CacheKind::kPaged, 1 << 20, 1, "bf16"}}, INT64_MAX);
  ASSERT_TRUE(kv.ok());
  EXPECT_EQ((*kv)->max_tokens(), INT32_MAX);
}

TEST(KvManager, AdmitsTheWorstCaseInEveryGroup) {
  auto made = KvManager::Create(TwoGroups(), 2800);
  ASSERT_TRUE(made.ok());
  KvManager& kv = **made;
  const auto first = kv.Admit(17);  // 5 small blocks, 2 large ones: the large pool is spoken for
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(kv.reserved_bytes(), 2500);
  EXPECT_EQ(kv.used_bytes(), 0);
  EXPECT_FALSE(kv.Admit(1).has_value());
  kv.Release(*first);
  EXPECT_EQ(kv.reserved_bytes(), 0);
  EXPECT_TRUE(kv.Admit(16).has_value());
  EXPECT_TRUE(kv.Admit(16).has_value());
  EXPECT_FALSE(kv.Admit(1).has_value());
  EXPECT_TRUE(kv.CheckIntegrity().ok());
}

TEST(KvManager, TablesGrowInPlaceAndShareNothing) {
  auto made = KvManager::Create(TwoGroups(), 2800);
  ASSERT_TRUE(made.ok());
  KvManager& kv = **made;
  const CacheSlot a = *kv.Admit(16);
  const CacheSlot b = *kv.Admit(16);
  kv.Reserve(a, 1);
  kv.Reserve(b, 5);
  ASSERT_EQ(kv.BlockTables(a).size(), 2u);
  EXPECT_EQ(kv.BlockTables(a)[0].size(), 1u);
  EXPECT_EQ(kv.BlockTables(b)[0].size(), 2u);
  const BlockId* before = kv.BlockTables(a)[0].data();
  const BlockId first = before[0];
  kv.Reserve(a, 16);
  EXPECT_EQ(kv.BlockTables(a)[0].data(), before);
  EXPECT_EQ(kv.BlockTables(a)[0][0], first);
  EXPECT_EQ(kv.used_bytes(), 4 * 100 + 2 * 100 + 2 * 1000);
  std::set<BlockId> all(kv.BlockTables(a)[0].begin(), kv.BlockTables(a)[0].end());
  all.insert(kv.BlockTables(b)[0].begin(), kv.BlockTables(b)[0].end());
  EXPECT_EQ(all.size(), 6u);
  EXPECT_TRUE(kv.CheckIntegrity().ok());
  kv.Release(a);
  kv.Release(b);
  EXPECT_EQ(kv.used_bytes(), 0);
  EXPECT_TRUE(kv.CheckIntegrity().ok());
}

TEST(KvManagerDeathTest, GrowingPastTheReservationIsABrokenInvariant) {
  auto made = KvManager::Create(TwoGroups(), 2800);
  ASSERT_TRUE(made.ok());
  const CacheSlot slot = *(*made)->Admit(4);
  EXPECT_DEATH((*made)->Reserve(slot, 5), "broken invariant");
}

}  // namespace
}  // namespace lockstep
