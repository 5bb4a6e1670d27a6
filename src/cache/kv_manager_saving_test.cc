// What is to be saved, and what can be restored.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "cache/kv_manager.h"

namespace lockstep {
namespace {

using Tokens = std::vector<TokenId>;

Tokens Counting(int count) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

class Saving : public ::testing::Test {
 protected:
  // Blocks of 4 tokens.
  void Make(std::vector<CacheKind> kinds, int64_t blocks = 60) {
    std::vector<CacheGroupSpec> groups;
    for (const CacheKind kind : kinds) groups.push_back({kind, 4, 1, "bf16", 8, 0});
    kv_ = KvManager::Create(groups, blocks, {.rows = 2, .save_identity = "model"}).value();
  }
  CacheSlot Admit(int64_t tokens) { return kv_->Admit(tokens).value(); }
  void Compute(CacheSlot slot, const Tokens& tokens) {
    kv_->Reserve(slot, static_cast<int64_t>(tokens.size()));
    kv_->Commit(slot, tokens);
    Check();
  }
  void Check() {
    const Status status = kv_->CheckIntegrity();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  // (depth, group) of all that is to be saved, which is then saved.
  std::vector<std::pair<int64_t, int32_t>> SaveAll() {
    std::vector<std::pair<int64_t, int32_t>> all;
    while (true) {
      const auto parts = kv_->NextToSave();
      if (parts.empty()) break;
      for (const auto& part : parts) all.emplace_back(part.depth, part.group);
      kv_->Saved();
    }
    EXPECT_EQ(kv_->saved_up_to(), kv_->last_to_save());
    return all;
  }
  using Parts = std::vector<std::pair<int64_t, int32_t>>;

  std::unique_ptr<KvManager> kv_;
};

TEST_F(Saving, EverySpanOnceAndUnderItsName) {
  Make({CacheKind::kPaged});
  const CacheSlot slot = Admit(12);
  Compute(slot, Counting(10));
  const auto parts = kv_->NextToSave();
  ASSERT_EQ(parts.size(), 1u);
  const ChainDigest root = ChainRoot("model", "");
  EXPECT_EQ(parts[0].parent, root);
  EXPECT_EQ(parts[0].digest, ChainNext(root, Counting(4)));
  EXPECT_EQ(parts[0].blocks, (std::vector<BlockId>{kv_->BlockTables(slot)[0][0]}));
  EXPECT_EQ(kv_->saved_up_to(), 0u);
  EXPECT_EQ(SaveAll(), (Parts{{1, 0}, {2, 0}}));
  Compute(slot, Counting(12));
  EXPECT_EQ(SaveAll(), (Parts{{3, 0}}));
  kv_->Release(slot);
  EXPECT_EQ(SaveAll(), Parts{});
  // What is taken over is seen to again: it may have gone from where it was saved.
  const CacheSlot next = Admit(12);
  EXPECT_EQ(kv_->Adopt(next, Counting(12), 11), 8);
  EXPECT_EQ(SaveAll().size(), 2u);
}

TEST_F(Saving, AManagerWithoutAnIdentitySavesNothing) {
  kv_ = KvManager::Create({{CacheKind::kPaged, 4, 1, "bf16"}}, 20).value();
  Compute(Admit(12), Counting(10));
  EXPECT_TRUE(kv_->NextToSave().empty());
  EXPECT_EQ(kv_->last_to_save(), 0u);
}

TEST_F(Saving, StatesThatAreMeantToStayAndTheLastOne) {
  Make({CacheKind::kPaged, CacheKind::kRecurrent});
  const CacheSlot slot = Admit(40);
  EXPECT_EQ(kv_->ChunkEnd(slot, 4, 10), 4);
  Compute(slot, Counting(4));  // on the way
  EXPECT_EQ(SaveAll(), (Parts{{1, 0}}));
  EXPECT_EQ(kv_->ChunkEnd(slot, 20, 10), 8);
  Compute(slot, Counting(8));  // the last boundary of the stable part
  EXPECT_EQ(SaveAll(), (Parts{{2, 0}, {2, 1}}));
  Compute(slot, Counting(12));
  Compute(slot, Counting(16));
  EXPECT_EQ(SaveAll(), (Parts{{3, 0}, {4, 0}}));
  kv_->Release(slot);
  EXPECT_EQ(SaveAll(), (Parts{{4, 0}, {4, 1}}));
}

TEST_F(Saving, WhatAFailedSequenceComputedIsNotSavedAndIsBanned) {
  Make({CacheKind::kPaged});
  const CacheSlot good = Admit(12);
  Compute(good, Counting(4));
  SaveAll();
  const CacheSlot bad = Admit(20);
  ASSERT_EQ(kv_->Adopt(bad, Counting(16), 15), 4);
  Compute(bad, Counting(8));
  ASSERT_EQ(SaveAll(), (Parts{{1, 0}, {2, 0}}));
  Compute(bad, Counting(16));
  kv_->Release(bad, /*failed=*/true);
  EXPECT_EQ(SaveAll(), Parts{});
  const ChainDigest first = ChainNext(ChainRoot("model", ""), Counting(4));
  const Tokens all = Counting(8);
  const ChainDigest second = ChainNext(first, std::span(all).subspan(4));
  EXPECT_EQ(kv_->TakeBanned(), (std::vector<ChainDigest>{second}));
  EXPECT_TRUE(kv_->TakeBanned().empty());
}

TEST_F(Saving, WhatHasToGoBeforeItIsSavedIsCounted) {
  Make({CacheKind::kPaged}, 8);
  const CacheSlot slot = Admit(8);
  Compute(slot, Counting(8));
  kv_->Release(slot);
  const CacheSlot other = Admit(kv_->max_tokens());
  Tokens tokens(static_cast<size_t>(kv_->max_tokens()), 7);
  Compute(other, tokens);
  if (kv_->evictions() == 0) {
    const CacheSlot third = Admit(8 * 4 - kv_->max_tokens());
    Compute(third, Tokens(static_cast<size_t>(8 * 4 - kv_->max_tokens()), 8));
  }
  EXPECT_EQ(kv_->never_saved(), kv_->evictions());
  EXPECT_GT(kv_->never_saved(), 0u);
}

TEST_F(Saving, APrefixComesBackIntoBlocksOfItsOwn) {
  Make({CacheKind::kPaged, CacheKind::kWindow});
  const Tokens prompt = Counting(30);
  const CacheSlot slot = Admit(34);
  const auto digests = kv_->SpansToCome(slot, prompt, 29);
  ASSERT_EQ(digests.size(), 7u);
  // All of the paged group, and of the window (7 positions before) spans 4 and 5.
  const std::vector<uint64_t> there = {1, 1, 1, 3, 3, 1, 0};
  ASSERT_EQ(kv_->Restorable(slot, there), 20);
  const auto parts = kv_->BeginRestore(slot, 20, digests);
  Parts needed;
  for (const auto& part : parts) {
    needed.emplace_back(part.depth, part.group);
    EXPECT_EQ(part.digest, digests[static_cast<size_t>(part.depth) - 1]);
    EXPECT_NE(part.blocks[0], kNoBlock);
  }
  EXPECT_EQ(needed, (Parts{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {4, 1}, {5, 0}, {5, 1}}));
  Check();
  kv_->FinishRestore(slot, std::span(prompt).first(20));
  Check();
  kv_->Reserve(slot, 24);
  EXPECT_EQ(kv_->BlockTables(slot)[0][4], parts[5].blocks[0]);
  EXPECT_EQ(kv_->BlockTables(slot)[1][4], parts[6].blocks[0]);
  EXPECT_EQ(kv_->BlockTables(slot)[1][2], kNoBlock);
  // And others share it.
  const CacheSlot other = Admit(34);
  EXPECT_EQ(kv_->Adopt(other, prompt, 29), 20);
  kv_->Release(slot);
  kv_->Release(other);
  Check();
}

TEST_F(Saving, AStateHasToBeThereAtTheEndAlone) {
  Make({CacheKind::kPaged, CacheKind::kRecurrent});
  const Tokens prompt = Counting(30);
  const CacheSlot slot = Admit(34);
  const auto digests = kv_->SpansToCome(slot, prompt, 29);
  const std::vector<uint64_t> there = {1, 3, 1, 3, 1, 1, 0};
  ASSERT_EQ(kv_->Restorable(slot, there), 16);
  EXPECT_EQ(kv_->BeginRestore(slot, 16, digests).size(), 5u);
  kv_->FinishRestore(slot, std::span(prompt).first(16));
  kv_->Reserve(slot, 20);
  EXPECT_NE(kv_->BlockTables(slot)[1][0], kNoBlock);
  const CacheSlot other = Admit(34);
  EXPECT_EQ(kv_->Adopt(other, prompt, 29), 16);
  Check();
}

TEST_F(Saving, ARestoreGoesOnFromWhatTheCacheHas) {
  Make({CacheKind::kPaged, CacheKind::kWindow});
  const Tokens prompt = Counting(30);
  const CacheSlot first = Admit(8);
  Compute(first, Counting(8));
  kv_->Release(first);
  const CacheSlot slot = Admit(34);
  ASSERT_EQ(kv_->Adopt(slot, prompt, 29), 8);
  const auto digests = kv_->SpansToCome(slot, prompt, 29);
  ASSERT_EQ(digests.size(), 5u);
  ASSERT_EQ(kv_->Restorable(slot, std::vector<uint64_t>{3, 1, 0, 0, 0}), 12);
  EXPECT_EQ(kv_->BeginRestore(slot, 12, digests).size(), 2u);
  kv_->FinishRestore(slot, std::span(prompt).first(12));
  kv_->Reserve(slot, 16);
  EXPECT_NE(kv_->BlockTables(slot)[1][1], kNoBlock);  // from the cache
  Check();
}

TEST_F(Saving, GivingUpStartsOver) {
  Make({CacheKind::kPaged, CacheKind::kWindow, CacheKind::kRecurrent});
  const Tokens prompt = Counting(30);
  const CacheSlot first = Admit(8);
  Compute(first, Counting(8));
  kv_->Release(first);
  const CacheSlot slot = Admit(34);
  ASSERT_EQ(kv_->Adopt(slot, prompt, 29), 8);
  const auto digests = kv_->SpansToCome(slot, prompt, 29);
  ASSERT_EQ(kv_->Restorable(slot, std::vector<uint64_t>{7, 7, 7, 7, 7}), 28);
  kv_->BeginRestore(slot, 28, digests);
  kv_->GiveUpRestore(slot);
  Check();
  EXPECT_EQ(kv_->used_bytes(), 0);
  EXPECT_EQ(kv_->Adopt(slot, prompt, 29), 8);
  Compute(slot, prompt);
  // And one that is released in the midst of it.
  const CacheSlot other = Admit(34);
  kv_->Adopt(other, prompt, 12);
  const auto more = kv_->SpansToCome(other, prompt, 29);
  if (kv_->Restorable(other, std::vector<uint64_t>(more.size(), 7)) > 12) {
    kv_->BeginRestore(other, 28, more);
  }
  kv_->Release(other);
  kv_->Release(slot);
  Check();
  EXPECT_EQ(kv_->used_bytes(), 0);
}

}  // namespace
}  // namespace lockstep
