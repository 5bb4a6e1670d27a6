// Windows that slide, and states instead of positions, alone and beside full attention.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cache/kv_manager.h"

namespace lockstep {
namespace {

using Tokens = std::vector<TokenId>;

Tokens Counting(int64_t count) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

CacheGroupSpec Full() { return {CacheKind::kPaged, 4, 1, "bf16"}; }
CacheGroupSpec Window(int32_t window, int32_t sinks) {
  return {CacheKind::kWindow, 4, 1, "bf16", window, sinks};
}
CacheGroupSpec States() { return {CacheKind::kRecurrent, 4, 1, "f32"}; }

class Kinds : public ::testing::Test {
 protected:
  void Make(const std::vector<CacheGroupSpec>& groups, int64_t budget, int32_t step_tokens,
            int32_t rows = 1) {
    kv_ = KvManager::Create(groups, budget, {.rows = rows, .step_tokens = step_tokens}).value();
  }
  // Computes up to `end` in steps of `step` tokens.
  void Compute(CacheSlot slot, int64_t end, int64_t step) {
    for (int64_t at = computed_[slot]; at < end;) {
      at = std::min(end, at + step);
      kv_->Reserve(slot, at);
      kv_->Commit(slot, Counting(at));
      computed_[slot] = at;
    }
    const Status status = kv_->CheckIntegrity();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  int64_t Adopt(CacheSlot slot, int64_t limit) {
    return computed_[slot] = kv_->Adopt(slot, Counting(limit + 1), limit);
  }
  // Which entries of the table are blocks: one letter each.
  std::string Shape(CacheSlot slot, size_t group) {
    std::string shape;
    for (const BlockId id : kv_->BlockTables(slot)[group]) shape += id == kNoBlock ? '.' : 'x';
    return shape;
  }

  std::unique_ptr<KvManager> kv_;
  std::map<CacheSlot, int64_t> computed_;
};

TEST_F(Kinds, BlocksThatSlideOutGoBackWhileTheRowRuns) {
  Make({Window(6, 0)}, 4, 4);  // 6 + 4 - 2 positions and their edges: 3 blocks at once
  EXPECT_EQ(kv_->max_tokens(), INT32_MAX);
  const CacheSlot slot = *kv_->Admit(1000);
  EXPECT_EQ(kv_->reserved_bytes(), 3);
  for (int64_t end = 1; end <= 1000; ++end) {
    Compute(slot, end, 1);
    ASSERT_LE(kv_->used_bytes(), 3);
  }
  kv_->Reserve(slot, 1000);
  // Position 1000 reads from 995 on.
  EXPECT_EQ(Shape(slot, 0), std::string(248, '.') + "xx");
  kv_->Release(slot);
  EXPECT_EQ(kv_->used_bytes(), 0);
}

TEST_F(Kinds, SinksStay) {
  Make({Window(6, 5)}, 100, 4);
  const CacheSlot slot = *kv_->Admit(40);
  Compute(slot, 40, 3);
  EXPECT_EQ(Shape(slot, 0), "xx......xx");
}

TEST_F(Kinds, ARowThatTakesOverHoldsTheWindowAlone) {
  Make({Full(), Window(6, 0)}, 200, 8, 2);
  const CacheSlot a = *kv_->Admit(41);
  Compute(a, 41, 8);
  const CacheSlot b = *kv_->Admit(41);
  EXPECT_EQ(Adopt(b, 40), 40);
  kv_->Reserve(b, 41);
  EXPECT_EQ(Shape(b, 0), std::string(11, 'x'));
  EXPECT_EQ(Shape(b, 1), "........xxx");  // 35 to 40
  EXPECT_TRUE(kv_->CheckIntegrity().ok());
}

TEST_F(Kinds, APrefixNeedsItsWholeWindow) {
  // The window's pool holds what two rows may need; the other group's holds everything.
  Make({Window(9, 0)}, 8, 4, 2);
  const CacheSlot a = *kv_->Admit(400);
  Compute(a, 100, 4);
  // Of the blocks that slid out the last few are still there, and only those.
  int64_t found = 0;
  int64_t missing = 0;
  for (int64_t limit = 4; limit <= 100; limit += 4) {
    const CacheSlot b = *kv_->Admit(101);
    const int64_t end = Adopt(b, limit);
    EXPECT_TRUE(end == 0 || end == limit) << end << " of " << limit;
    ++(end == 0 ? missing : found);
    kv_->Release(b);
    computed_.erase(b);
  }
  EXPECT_GT(found, 0);
  EXPECT_GT(missing, 15);
}

TEST_F(Kinds, AStepReadsOneStateAndWritesAnother) {
  Make({States()}, 10, 8);
  const CacheSlot slot = *kv_->Admit(20);
  kv_->Reserve(slot, 3);
  EXPECT_EQ(Shape(slot, 0), ".x");
  const BlockId written = kv_->BlockTables(slot)[0][1];
  kv_->Reserve(slot, 5);  // the step failed, and is computed again otherwise
  EXPECT_EQ(kv_->BlockTables(slot)[0][1], written);
  kv_->Commit(slot, Counting(5));
  kv_->Reserve(slot, 6);
  EXPECT_EQ(kv_->BlockTables(slot)[0][0], written);
  EXPECT_NE(kv_->BlockTables(slot)[0][1], written);
  EXPECT_EQ(kv_->used_bytes(), 2);
}

TEST_F(Kinds, AStateIsKeptWhereThePromptIsStable) {
  Make({Full(), States()}, 100, 16);
  const CacheSlot a = *kv_->Admit(40);
  // The prompt has 30 tokens, of which 21 are stable.
  EXPECT_EQ(kv_->ChunkEnd(a, 14, 21), 12);
  Compute(a, 12, 12);
  EXPECT_EQ(kv_->ChunkEnd(a, 28, 21), 20);
  Compute(a, 20, 8);
  EXPECT_EQ(kv_->ChunkEnd(a, 30, 21), 28);
  Compute(a, 28, 8);
  Compute(a, 30, 2);
  Compute(a, 37, 1);  // and goes on, past 32 and 36
  kv_->Release(a);
  computed_.clear();
  // The stable state, and the last one at a boundary; not those on the way.
  const std::vector<int64_t> limits = {12, 19, 20, 28, 32, 35, 36, 39};
  const std::vector<int64_t> expected = {0, 0, 20, 20, 20, 20, 36, 36};
  for (size_t i = 0; i < limits.size(); ++i) {
    const CacheSlot b = *kv_->Admit(40);
    EXPECT_EQ(Adopt(b, limits[i]), expected[i]) << limits[i];
    kv_->Release(b);
  }
  EXPECT_TRUE(kv_->CheckIntegrity().ok());
}

TEST_F(Kinds, WhoWaitsForAStateSaysWhereItIsNeeded) {
  Make({Full(), States()}, 100, 32, 2);
  const Tokens prompt = Counting(30);
  Tokens other = prompt;
  other[14] = 99;  // alike up to a position within the fourth span
  const CacheSlot a = *kv_->Admit(30);
  const CacheSlot b = *kv_->Admit(30);
  EXPECT_TRUE(kv_->LearnsFrom(b, other, 29, a, prompt));
  EXPECT_EQ(kv_->ChunkEnd(a, 30, 29), 12);
  Compute(a, 12, 12);
  EXPECT_EQ(kv_->Adopt(b, other, 29), 12);
  EXPECT_FALSE(kv_->LearnsFrom(b, other, 29, a, prompt));
  kv_->Adopt(a, prompt, 29);
  EXPECT_EQ(kv_->ChunkEnd(a, 30, 29), 28);
}

TEST_F(Kinds, GroupsThatMakeNoSenseAreRefused) {
  for (const CacheGroupSpec& spec : {Window(0, 0), Window(4, -1)}) {
    const auto made = KvManager::Create({spec}, 1000);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(made.status().param(), "cache_groups");
  }
}

// A small window must not leave room for one row alone, nor the rows none for a long one.
TEST_F(Kinds, PoolsAreSizedForManyRowsAndForALongOne) {
  Make({Full(), Window(8, 0), States()}, 1000, 8, 16);
  const std::vector<int32_t> pools = kv_->pool_blocks();
  // 16 rows, and 4 more for what is kept.
  EXPECT_EQ(pools[2], 20 * 2);  // two states a row
  EXPECT_EQ(pools[1], 20 * 5);  // 8 + 8 - 2 positions and their edges
  EXPECT_EQ(pools[0], 1000 - 40 - 100);
  EXPECT_EQ(kv_->max_tokens(), pools[0] * 4);
  for (int row = 0; row < 16; ++row) EXPECT_TRUE(kv_->Admit(200).has_value());
}

}  // namespace
}  // namespace lockstep
