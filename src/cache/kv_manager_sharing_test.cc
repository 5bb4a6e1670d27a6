// What sequences that begin alike share, and what they must not.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "cache/kv_manager.h"

namespace lockstep {
namespace {

using Tokens = std::vector<TokenId>;

Tokens Counting(int from, int count) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

Tokens Joined(Tokens head, const Tokens& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

class Sharing : public ::testing::Test {
 protected:
  void Make(std::vector<CacheGroupSpec> groups, int64_t budget, KvOptions options = {}) {
    kv_ = KvManager::Create(groups, budget, options).value();
  }
  // Blocks of 4 tokens and 1 byte.
  void MakePaged(int blocks) { Make({{CacheKind::kPaged, 4, 1, "bf16"}}, blocks); }

  CacheSlot Admit(int64_t tokens, std::string_view name_space = {}) {
    const auto slot = kv_->Admit(tokens, name_space);
    EXPECT_TRUE(slot.has_value());
    return *slot;
  }
  // Computes all of `tokens` in one step.
  void Compute(CacheSlot slot, const Tokens& tokens) {
    kv_->Reserve(slot, static_cast<int64_t>(tokens.size()));
    kv_->Commit(slot, tokens);
    Check();
  }
  // A sequence that comes, is computed, and goes.
  void Pass(const Tokens& tokens, std::string_view name_space = {}) {
    const CacheSlot slot = Admit(static_cast<int64_t>(tokens.size()), name_space);
    kv_->Adopt(slot, tokens, static_cast<int64_t>(tokens.size()) - 1);
    Compute(slot, tokens);
    kv_->Release(slot);
    Check();
  }
  // How much of `tokens` a newcomer finds; it leaves at once.
  int64_t Found(const Tokens& tokens, std::string_view name_space = {}) {
    const CacheSlot slot = Admit(static_cast<int64_t>(tokens.size()), name_space);
    const int64_t found = kv_->Adopt(slot, tokens, static_cast<int64_t>(tokens.size()) - 1);
    Check();
    kv_->Release(slot);
    return found;
  }
  std::vector<BlockId> Table(CacheSlot slot, size_t group = 0) {
    const auto table = kv_->BlockTables(slot)[group];
    return {table.begin(), table.end()};
  }
  void Check() {
    const Status status = kv_->CheckIntegrity();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  std::unique_ptr<KvManager> kv_;
};

TEST_F(Sharing, WholeBlocksAreTakenOverAndThePartialOneIsNot) {
  MakePaged(20);
  const Tokens prompt = Counting(0, 10);
  const CacheSlot a = Admit(12);
  Compute(a, prompt);
  const CacheSlot b = Admit(12);
  EXPECT_EQ(kv_->Adopt(b, prompt, 9), 8);
  kv_->Reserve(b, 10);
  EXPECT_EQ(Table(b)[0], Table(a)[0]);
  EXPECT_EQ(Table(b)[1], Table(a)[1]);
  EXPECT_NE(Table(b)[2], Table(a)[2]);
  EXPECT_EQ(kv_->used_bytes(), 4);  // a shared block counts once
  EXPECT_EQ(kv_->reserved_bytes(), 6);
  Check();
}

TEST_F(Sharing, TheLimitIsKeptToTheToken) {
  MakePaged(20);
  Pass(Counting(0, 12));
  for (int length = 1; length <= 16; ++length) {
    // At most 12 of its tokens are known, and the last one is never taken.
    EXPECT_EQ(Found(Counting(0, length)), std::min(12, (length - 1) / 4 * 4)) << length;
  }
}

TEST_F(Sharing, ASpanCountsFromTheBeginning) {
  MakePaged(40);
  Pass(Joined(Counting(0, 4), Counting(100, 8)));
  EXPECT_EQ(Found(Joined(Counting(0, 4), Counting(100, 5))), 8);
  EXPECT_EQ(Found(Joined(Counting(1, 4), Counting(100, 5))), 0);  // the same span elsewhere
  EXPECT_EQ(Found(Counting(100, 9)), 0);
  EXPECT_EQ(Found(Joined(Counting(0, 4), Counting(101, 5))), 4);
}

TEST_F(Sharing, WhatNoStepHasFinishedIsNotShared) {
  MakePaged(20);
  const Tokens prompt = Counting(0, 9);
  const CacheSlot a = Admit(9);
  kv_->Reserve(a, 9);
  EXPECT_EQ(Found(prompt), 0);
  kv_->Commit(a, Tokens(prompt.begin(), prompt.begin() + 7));
  EXPECT_EQ(Found(prompt), 4);
  kv_->Commit(a, prompt);
  EXPECT_EQ(Found(prompt), 8);
}

TEST_F(Sharing, ARowThatStartedTakesOverWhatOthersFillMeanwhile) {
  MakePaged(20);
  const Tokens prompt = Counting(0, 13);
  const CacheSlot a = Admit(13);
  const CacheSlot b = Admit(13);
  EXPECT_EQ(kv_->Adopt(b, prompt, 12), 0);
  EXPECT_TRUE(kv_->LearnsFrom(b, prompt, 12, a, prompt));
  Compute(a, Tokens(prompt.begin(), prompt.begin() + 6));
  EXPECT_EQ(kv_->Adopt(b, prompt, 12), 4);
  EXPECT_TRUE(kv_->LearnsFrom(b, prompt, 12, a, prompt));   // a is in the midst of it
  EXPECT_FALSE(kv_->LearnsFrom(a, prompt, 12, b, prompt));  // but a has its own beginning of it
  Compute(a, prompt);
  EXPECT_EQ(kv_->Adopt(b, prompt, 12), 12);
  EXPECT_FALSE(kv_->LearnsFrom(b, prompt, 12, a, prompt));  // nothing more may be taken over
  Check();
}

TEST_F(Sharing, NobodyWaitsForOtherTokensOrForMoreThanItMayTake) {
  MakePaged(20);
  const Tokens prompt = Counting(0, 9);
  const CacheSlot a = Admit(9);
  const CacheSlot b = Admit(9);
  const CacheSlot salted = Admit(9, "salt");
  EXPECT_TRUE(kv_->LearnsFrom(b, prompt, 8, a, prompt));
  EXPECT_FALSE(kv_->LearnsFrom(b, prompt, 3, a, prompt));
  EXPECT_FALSE(kv_->LearnsFrom(b, Joined({7}, prompt), 8, a, prompt));
  EXPECT_FALSE(kv_->LearnsFrom(b, prompt, 8, a, Counting(0, 3)));
  EXPECT_FALSE(kv_->LearnsFrom(salted, prompt, 8, a, prompt));
}

TEST_F(Sharing, BlocksOfAStepThatFailedMakeWayForSharedOnes) {
  MakePaged(20);
  const Tokens prompt = Counting(0, 13);
  const CacheSlot a = Admit(13);
  const CacheSlot b = Admit(13);
  kv_->Reserve(b, 13);  // its step fails
  Compute(a, prompt);
  EXPECT_EQ(kv_->Adopt(b, prompt, 12), 12);
  kv_->Reserve(b, 13);
  const std::vector<BlockId> shared = Table(a);
  const std::vector<BlockId> table = Table(b);
  EXPECT_TRUE(std::equal(table.begin(), table.begin() + 3, shared.begin()));
  EXPECT_NE(table[3], shared[3]);
  EXPECT_EQ(kv_->used_bytes(), 5);
  Check();
}

TEST_F(Sharing, TwoThatComputedTheSameKeepOneOfIt) {
  MakePaged(20);
  const Tokens prompt = Counting(0, 9);
  const CacheSlot a = Admit(9);
  const CacheSlot b = Admit(9);
  kv_->Reserve(a, 9);
  kv_->Reserve(b, 9);
  EXPECT_EQ(kv_->used_bytes(), 6);
  kv_->Commit(a, prompt);
  kv_->Commit(b, prompt);
  EXPECT_EQ(kv_->used_bytes(), 4);
  EXPECT_EQ(Table(a)[1], Table(b)[1]);
  EXPECT_NE(Table(a)[2], Table(b)[2]);
  Check();
}

TEST_F(Sharing, NamespacesShareNothing) {
  MakePaged(20);
  Pass(Counting(0, 8), "a");
  EXPECT_EQ(Found(Counting(0, 9), "a"), 8);
  EXPECT_EQ(Found(Counting(0, 9), "b"), 0);
  EXPECT_EQ(Found(Counting(0, 9)), 0);
}

TEST_F(Sharing, WhatAFailedSequenceComputedIsForgottenWithAllThatFollows) {
  MakePaged(40);
  const Tokens prompt = Counting(0, 13);
  Pass(Counting(0, 4));
  const CacheSlot a = Admit(13);
  EXPECT_EQ(kv_->Adopt(a, prompt, 12), 4);
  Compute(a, Tokens(prompt.begin(), prompt.begin() + 9));
  const CacheSlot b = Admit(13);
  EXPECT_EQ(kv_->Adopt(b, prompt, 12), 8);
  Compute(b, prompt);
  kv_->Release(a, /*failed=*/true);
  Check();
  EXPECT_EQ(Found(prompt), 4);  // the span that was there before it
  kv_->Release(b);
  EXPECT_EQ(Found(prompt), 4);
  Pass(prompt);
  EXPECT_EQ(Found(prompt), 12);
  EXPECT_EQ(kv_->used_bytes(), 0);
}

TEST_F(Sharing, WhatAFailedSequenceComputedIsForgottenToThoseOnTheSameWayToo) {
  MakePaged(40);
  const Tokens prompt = Counting(0, 17);
  const CacheSlot a = Admit(17);
  Compute(a, Counting(0, 4));
  const CacheSlot b = Admit(17);
  EXPECT_EQ(kv_->Adopt(b, prompt, 16), 4);
  Compute(a, Counting(0, 12));
  kv_->Release(a, /*failed=*/true);
  Check();
  EXPECT_EQ(kv_->Adopt(b, prompt, 16), 4);
  Compute(b, prompt);
  kv_->Release(b);
  Check();
}

TEST_F(Sharing, ACancelledSequenceLeavesWhatItFinished) {
  MakePaged(20);
  const CacheSlot a = Admit(20);
  Compute(a, Counting(0, 9));
  kv_->Reserve(a, 17);  // under way when it is cancelled
  kv_->Release(a);
  EXPECT_EQ(Found(Counting(0, 20)), 8);
}

TEST_F(Sharing, TheLongestUnusedGoesFirstAndAPrefixFromItsEnd) {
  MakePaged(8);
  const Tokens first = Counting(0, 12);
  const Tokens second = Counting(100, 12);
  Pass(first);
  Pass(second);
  EXPECT_EQ(kv_->cached_bytes(), 6);
  EXPECT_EQ(Found(Counting(0, 9)), 8);  // used again: the second one is older now
  Pass(Counting(200, 12));              // two are free, one has to go
  EXPECT_EQ(kv_->evictions(), 1u);
  // The end of the first one was not used again, so it was the oldest of all.
  EXPECT_EQ(Found(Joined(first, {1})), 8);
  EXPECT_EQ(Found(Joined(second, {1})), 12);
  EXPECT_EQ(Found(Counting(200, 13)), 12);
}

TEST_F(Sharing, CachedBlocksGoForAdmittedSequencesAndLiveOnesNever) {
  MakePaged(8);
  Pass(Counting(0, 32));
  EXPECT_EQ(kv_->cached_bytes(), 8);
  EXPECT_EQ(kv_->reserved_bytes(), 0);  // what is cached is not in the way
  const CacheSlot a = Admit(16);
  EXPECT_EQ(kv_->Adopt(a, Counting(0, 16), 15), 12);
  const CacheSlot b = Admit(16);
  Compute(b, Counting(500, 16));
  Compute(a, Counting(0, 16));
  EXPECT_EQ(kv_->used_bytes(), 8);
  EXPECT_EQ(kv_->cached_bytes(), 0);
  EXPECT_FALSE(kv_->Admit(1).has_value());
}

TEST_F(Sharing, GroupsOfUnlikeBlocksShareWholeBlocksOfBoth) {
  Make({{CacheKind::kPaged, 4, 1, "bf16"}, {CacheKind::kLatent, 6, 1, "bf16"}}, 60);
  EXPECT_EQ(kv_->span_tokens(), 12);
  Pass(Counting(0, 30));
  EXPECT_EQ(Found(Counting(0, 30)), 24);
  EXPECT_EQ(Found(Counting(0, 24)), 12);
  const CacheSlot a = Admit(30);
  kv_->Adopt(a, Counting(0, 30), 29);
  kv_->Reserve(a, 30);
  EXPECT_EQ(Table(a, 0).size(), 8u);
  EXPECT_EQ(Table(a, 1).size(), 5u);
  Check();
}

TEST_F(Sharing, OffMeansOff) {
  Make({{CacheKind::kPaged, 4, 1, "bf16"}}, 20, {.share_prefixes = false});
  Pass(Counting(0, 12));
  EXPECT_EQ(Found(Counting(0, 13)), 0);
  EXPECT_EQ(kv_->cached_bytes(), 0);
  const CacheSlot a = Admit(9);
  const CacheSlot b = Admit(9);
  EXPECT_FALSE(kv_->LearnsFrom(b, Counting(0, 9), 8, a, Counting(0, 9)));
}

}  // namespace
}  // namespace lockstep
