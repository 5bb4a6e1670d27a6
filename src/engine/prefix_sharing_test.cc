// Prompts that begin alike: computed once, by whoever, with the bytes of a run alone.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::Difference;
using testing::RecordingSink;
using testing::TestCore;
using testing::TestPrompt;

constexpr int kSpan = 16;  // the fake's blocks hold 4 and 16 positions
constexpr int kShared = 4 * kSpan;

// A shared beginning and an end of its own.
GenerationRequest RequestOf(int row, int shared = kShared) {
  GenerationRequest request = testing::TestRequest(5 + row, 100 + static_cast<uint64_t>(row), 6);
  const std::vector<TokenId> head = TestPrompt(shared, 1);
  request.prompt.insert(request.prompt.begin(), head.begin(), head.end());
  request.ignore_eos = true;
  return request;
}

GenerationEvent Alone(GenerationRequest request) {
  EngineOptions options = TestCore::DefaultOptions();
  options.prefix_cache = false;
  TestCore test({}, options);
  const auto sink = test.Submit(std::move(request));
  test.RunUntilIdle();
  return sink->merged;
}

// A core that counts how often each position of a prompt is computed.
struct CountingCore {
  explicit CountingCore(int step_tokens, FakeOptions fake = {}) {
    EngineOptions options = TestCore::DefaultOptions();
    options.step_tokens = step_tokens;
    const auto before = std::move(fake.before_step);
    fake.before_step = [this, before](int64_t n, const StepInput& input) {
      if (before) LOCKSTEP_RETURN_IF_ERROR(before(n, input));
      for (const StepRow& row : input.rows) {
        for (int p = row.begin; p < std::min(row.begin + row.count, kShared); ++p) ++computed[p];
      }
      return OkStatus();
    };
    test = std::make_unique<TestCore>(std::move(fake), options);
  }
  int MostOften() const {
    int most = 0;
    for (const auto& [position, times] : computed) most = std::max(most, times);
    return most;
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(test->core->idle());
    EXPECT_EQ(test->core->kv().used_bytes(), 0);
    EXPECT_EQ(test->core->kv().reserved_bytes(), 0);
    EXPECT_TRUE(test->core->kv().CheckIntegrity().ok());
  }

  std::map<int, int> computed;  // position -> how often
  std::unique_ptr<TestCore> test;
};

TEST(PrefixSharing, TheSecondRequestComputesOnlyWhatIsNew) {
  CountingCore core(64);
  const auto first = core.test->Submit(RequestOf(0));
  core.test->RunUntilIdle();
  const auto second = core.test->Submit(RequestOf(1));
  core.test->RunUntilIdle();
  EXPECT_EQ(first->merged.end->usage.cached_tokens, 0);
  EXPECT_EQ(second->merged.end->usage.cached_tokens, kShared);
  EXPECT_EQ(second->merged.end->usage.prompt_tokens, kShared + 6);
  EXPECT_EQ(Difference(second->merged, Alone(RequestOf(1))), "");
  EXPECT_EQ(core.MostOften(), 1);
  const EngineStats stats = core.test->core->stats();
  EXPECT_EQ(stats.cached_tokens, static_cast<uint64_t>(kShared));
  EXPECT_EQ(stats.prefix_queries, static_cast<uint64_t>(2 * kShared + 5 + 6));
  EXPECT_EQ(stats.prompt_tokens, stats.prefix_queries);
  EXPECT_GT(stats.kv_bytes_cached, 0);
  core.ExpectNothingLeft();
}

TEST(PrefixSharing, AnAnswerIsPartOfTheNextPrompt) {
  CountingCore core(64);
  GenerationRequest turn = RequestOf(0);
  turn.max_tokens = 40;
  const auto first = core.test->Submit(turn);
  core.test->RunUntilIdle();
  const std::vector<TokenId> answer = first->ids();
  turn.prompt.insert(turn.prompt.end(), answer.begin(), answer.end());
  turn.prompt.push_back(7);
  const auto second = core.test->Submit(turn);
  core.test->RunUntilIdle();
  // 64 + 5 + 40 tokens, of which the last one's keys and values were never computed.
  EXPECT_EQ(second->merged.end->usage.cached_tokens, (kShared + 5 + 39) / kSpan * kSpan);
  EXPECT_EQ(Difference(second->merged, Alone(turn)), "");
}

TEST(PrefixSharing, ABurstComputesItsCommonBeginningOnce) {
  for (const int step_tokens : {8, 20, 64}) {
    CountingCore core(step_tokens);
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    for (int row = 0; row < 8; ++row) sinks.push_back(core.test->Submit(RequestOf(row)));
    core.test->RunUntilIdle();
    EXPECT_EQ(core.MostOften(), 1) << step_tokens;
    for (int row = 0; row < 8; ++row) {
      const GenerationEvent& answer = sinks[static_cast<size_t>(row)]->merged;
      EXPECT_EQ(Difference(answer, Alone(RequestOf(row))), "");
      EXPECT_EQ(answer.end->usage.cached_tokens, row == 0 ? 0 : kShared) << row;
    }
    core.ExpectNothingLeft();
  }
}

// Prompts of one template begin alike and turn off soon: a short one does not wait for a long one.
TEST(PrefixSharing, WhoTurnsOffWaitsForTheCommonPartAlone) {
  CountingCore core(64);
  GenerationRequest shorter = RequestOf(0, kSpan);
  GenerationRequest longer = shorter;
  longer.prompt.resize(kSpan);
  const std::vector<TokenId> rest = TestPrompt(90, 9);
  longer.prompt.insert(longer.prompt.end(), rest.begin(), rest.end());
  const auto first = core.test->Submit(longer);
  const auto second = core.test->Submit(shorter);
  core.test->core->RunOneStep();
  EXPECT_EQ(core.computed[kSpan - 1], 1);
  EXPECT_EQ(core.computed[kSpan], 0);
  core.test->core->RunOneStep();
  EXPECT_EQ(second->merged.tokens.size(), 1u);
  EXPECT_EQ(first->merged.tokens.size(), 0u);
  core.test->RunUntilIdle();
  EXPECT_EQ(Difference(first->merged, Alone(longer)), "");
  EXPECT_EQ(Difference(second->merged, Alone(shorter)), "");
}

TEST(PrefixSharing, WhoLeavesIsWaitedForNoLonger) {
  // The one that computes for all is cancelled, or fails, after each number of steps.
  for (const bool fails : {false, true}) {
    for (int after = 1; after < 12; ++after) {
      FakeOptions fake;
      RequestId leader = 0;
      int steps = 0;
      fake.row_status = [&](int64_t, const StepRow& row) {
        const bool is_leader = row.prompt_tokens == kShared + 5;
        return fails && is_leader && ++steps == after ? Internal("not a number") : OkStatus();
      };
      CountingCore core(8, fake);
      std::vector<std::shared_ptr<RecordingSink>> sinks;
      for (int row = 0; row < 5; ++row) {
        sinks.push_back(core.test->Submit(RequestOf(row)));
        if (row == 0) leader = core.test->last_id();
      }
      for (int i = 0; i < after; ++i) core.test->core->RunOneStep();
      if (!fails) core.test->core->Cancel(leader);
      core.test->RunUntilIdle();
      ASSERT_TRUE(sinks[0]->ended());
      EXPECT_EQ(sinks[0]->merged.end->reason,
                fails ? FinishReason::kError : FinishReason::kCancelled);
      for (int row = 1; row < 5; ++row) {
        const GenerationEvent& answer = sinks[static_cast<size_t>(row)]->merged;
        EXPECT_EQ(Difference(answer, Alone(RequestOf(row))), "") << row << " after " << after;
      }
      // At most the span that it was in the midst of is computed again.
      EXPECT_LE(core.MostOften(), 2);
      core.ExpectNothingLeft();
    }
  }
}

TEST(PrefixSharing, WhatAFailedRowComputedIsNotUsedAgain) {
  FakeOptions fake;
  bool poisoned = true;
  fake.row_status = [&](int64_t, const StepRow& row) {
    return poisoned && row.sampling != nullptr ? Internal("not a number") : OkStatus();
  };
  CountingCore core(16, fake);
  const auto failed = core.test->Submit(RequestOf(0));
  core.test->RunUntilIdle();
  EXPECT_EQ(failed->merged.end->reason, FinishReason::kError);
  poisoned = false;
  const auto next = core.test->Submit(RequestOf(0));
  core.test->RunUntilIdle();
  EXPECT_EQ(next->merged.end->usage.cached_tokens, 0);
  EXPECT_EQ(Difference(next->merged, Alone(RequestOf(0))), "");
}

TEST(PrefixSharing, SaltsKeepRequestsApart) {
  CountingCore core(64);
  std::vector<int> cached;
  for (const char* salt : {"", "a", "a", "b", ""}) {
    GenerationRequest request = RequestOf(0);
    request.cache_salt = salt;
    const auto sink = core.test->Submit(request);
    core.test->RunUntilIdle();
    cached.push_back(sink->merged.end->usage.cached_tokens);
  }
  EXPECT_EQ(cached, (std::vector<int>{0, 0, kShared, 0, kShared}));
}

TEST(PrefixSharing, LogProbabilitiesOfThePromptNeedItComputed) {
  CountingCore core(64);
  GenerationRequest request = RequestOf(0);
  core.test->Submit(request);
  core.test->RunUntilIdle();
  request.prompt_logprobs = 1;
  const auto sink = core.test->Submit(request);
  core.test->RunUntilIdle();
  EXPECT_EQ(sink->merged.end->usage.cached_tokens, 0);
  EXPECT_EQ(sink->merged.prompt.size(), request.prompt.size());
  EXPECT_EQ(Difference(sink->merged, Alone(request)), "");
}

TEST(PrefixSharing, ManyRequestsHoldNoMoreThanTheBudget) {
  EngineOptions options = TestCore::DefaultOptions();
  options.kv_bytes = 8 << 10;
  options.max_rows = 4;
  TestCore test({}, options);
  for (int n = 0; n < 500; ++n) {
    // Half of them begin alike.
    GenerationRequest request = n % 2 == 0 ? RequestOf(n % 10, 3 * kSpan)
                                           : testing::TestRequest(40, static_cast<uint64_t>(n), 6);
    test.Submit(std::move(request));
    if (n % 7 == 0) test.RunUntilIdle();
    const EngineStats stats = test.core->stats();
    ASSERT_LE(stats.kv_bytes_used + stats.kv_bytes_cached, options.kv_bytes);
  }
  test.RunUntilIdle();
  EXPECT_GT(test.core->stats().prefix_evictions, 100u);
  EXPECT_GT(test.core->stats().cached_tokens, 2000u);
  EXPECT_EQ(test.core->kv().used_bytes(), 0);
  EXPECT_TRUE(test.core->kv().CheckIntegrity().ok());
}

// Windows that have slid, states, latents: each kind alone, and beside full attention.
class EveryKind : public ::testing::TestWithParam<std::vector<CacheGroupSpec>> {};

TEST_P(EveryKind, TurnsAndBurstsGetTheBytesOfARunAlone) {
  FakeOptions fake;
  fake.cache_groups = GetParam();
  EngineOptions options = TestCore::DefaultOptions();
  options.step_tokens = 24;
  options.prefix_cache = false;
  const auto alone = [&](const GenerationRequest& request) {
    TestCore test(fake, options);
    const auto sink = test.Submit(request);
    test.RunUntilIdle();
    return sink->merged;
  };
  EngineOptions sharing = options;
  sharing.prefix_cache = true;
  TestCore test(fake, sharing);
  // Turns of a chat, whose answers are not in the next prompt but for the stable part.
  GenerationRequest turn = RequestOf(0);
  for (int n = 0; n < 4; ++n) {
    turn.stable_tokens = static_cast<int32_t>(turn.prompt.size()) - 3;
    const auto sink = test.Submit(turn);
    test.RunUntilIdle();
    EXPECT_EQ(Difference(sink->merged, alone(turn)), "") << "turn " << n;
    if (n > 0) {
      // All whole spans of what the turn before said would stay.
      const int32_t stable = kShared + 5 - 3 + 20 * (n - 1);
      EXPECT_GE(sink->merged.end->usage.cached_tokens, stable / 4 * 4) << "turn " << n;
    }
    turn.prompt.resize(static_cast<size_t>(turn.stable_tokens));
    const std::vector<TokenId> more = TestPrompt(23, static_cast<uint64_t>(n) + 50);
    turn.prompt.insert(turn.prompt.end(), more.begin(), more.end());
  }
  // Three join in one step while others run past the window's wrap.
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int row = 0; row < 6; ++row) {
    sinks.push_back(test.Submit(RequestOf(row)));
    if (row == 2) {
      for (int i = 0; i < 9; ++i) test.core->RunOneStep();
    }
  }
  test.RunUntilIdle();
  for (int row = 0; row < 6; ++row) {
    EXPECT_EQ(Difference(sinks[static_cast<size_t>(row)]->merged, alone(RequestOf(row))), "");
  }
  EXPECT_EQ(test.core->kv().used_bytes(), 0);
  EXPECT_TRUE(test.core->kv().CheckIntegrity().ok());
}

CacheGroupSpec Full() { return {CacheKind::kPaged, 4, 64, ""}; }
CacheGroupSpec Window(int32_t window, int32_t sinks) {
  return {CacheKind::kWindow, 4, 64, "", window, sinks};
}
INSTANTIATE_TEST_SUITE_P(
    All, EveryKind,
    ::testing::Values(std::vector<CacheGroupSpec>{Full()},
                      std::vector<CacheGroupSpec>{{CacheKind::kLatent, 4, 64, ""}},
                      std::vector<CacheGroupSpec>{Window(10, 0)},
                      std::vector<CacheGroupSpec>{Full(), Window(10, 0)},
                      std::vector<CacheGroupSpec>{Full(), Window(7, 6)},
                      std::vector<CacheGroupSpec>{{CacheKind::kRecurrent, 4, 64, ""}},
                      std::vector<CacheGroupSpec>{Full(), {CacheKind::kRecurrent, 4, 64, ""}},
                      std::vector<CacheGroupSpec>{Full(),
                                                  Window(9, 2),
                                                  {CacheKind::kRecurrent, 4, 64, ""},
                                                  {CacheKind::kLatent, 4, 64, ""}}));

}  // namespace
}  // namespace lockstep
