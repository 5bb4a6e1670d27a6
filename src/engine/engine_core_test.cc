#include "engine/engine_core.h"

#include <gtest/gtest.h>

#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::Difference;
using testing::TestCore;
using testing::TestRequest;

GenerationRequest Endless(int prompt, uint64_t salt, int max_tokens) {
  GenerationRequest request = TestRequest(prompt, salt, max_tokens);
  request.ignore_eos = true;
  return request;
}

TEST(EngineCore, AnswersOneRequest) {
  TestCore test;
  const auto sink = test.Submit(Endless(5, 1, 7));
  EXPECT_FALSE(test.core->idle());
  test.RunUntilIdle();
  ASSERT_TRUE(sink->ended());
  EXPECT_EQ(sink->merged.tokens.size(), 7u);
  EXPECT_EQ(sink->merged.end->reason, FinishReason::kLength);
  EXPECT_EQ(sink->merged.end->usage.prompt_tokens, 5);
  EXPECT_EQ(sink->merged.end->usage.completion_tokens, 7);
  EXPECT_EQ(sink->offers, 7);
  EXPECT_TRUE(test.core->idle());
  EXPECT_EQ(test.core->kv().used_bytes(), 0);
  EXPECT_EQ(test.core->kv().reserved_bytes(), 0);
}

TEST(EngineCore, TheFirstTokenComesFromTheLastPromptTokenAndMayEndTheRow) {
  TestCore test;
  GenerationRequest request = TestRequest(5, 1, 7);
  for (TokenId id = 0; id < testing::kVocabSize; ++id) request.stop_token_ids.push_back(id);
  const auto sink = test.Submit(request);
  test.RunUntilIdle();
  EXPECT_EQ(test.core->stats().steps, 1u);
  EXPECT_EQ(sink->merged.end->reason, FinishReason::kStop);
  EXPECT_EQ(sink->merged.end->usage.completion_tokens, 1);
}

TEST(EngineCore, ZeroTokensComputesThePromptOnly) {
  TestCore test;
  GenerationRequest request = TestRequest(70, 1, 0);
  request.prompt_logprobs = 2;
  const auto sink = test.Submit(request);
  test.RunUntilIdle();
  EXPECT_EQ(test.core->stats().steps, 2u);  // 64 tokens a step
  ASSERT_TRUE(sink->ended());
  EXPECT_EQ(sink->offers, 1);
  EXPECT_EQ(sink->merged.end->reason, FinishReason::kLength);
  EXPECT_EQ(sink->merged.end->usage.completion_tokens, 0);
  ASSERT_EQ(sink->merged.prompt.size(), 70u);
  EXPECT_EQ(sink->merged.prompt[3].token, request.prompt[4]);
  EXPECT_EQ(sink->merged.prompt[69].token, -1);
}

TEST(EngineCore, WithoutMaxTokensTheContextEndsIt) {
  FakeOptions fake;
  fake.max_context = 20;
  TestCore test(fake);
  const auto sink = test.Submit(Endless(5, 1, -1));
  test.RunUntilIdle();
  EXPECT_EQ(sink->merged.tokens.size(), 15u);
  EXPECT_EQ(sink->merged.end->reason, FinishReason::kLength);
}

TEST(EngineCore, ThreeRowsJoinInOneStepWhileOthersRun) {
  TestCore together;
  std::vector<std::shared_ptr<testing::RecordingSink>> sinks;
  for (uint64_t salt = 0; salt < 2; ++salt) sinks.push_back(together.Submit(Endless(6, salt, 30)));
  for (int i = 0; i < 5; ++i) together.core->RunOneStep();
  for (uint64_t salt = 2; salt < 5; ++salt) sinks.push_back(together.Submit(Endless(9, salt, 12)));
  together.core->RunOneStep();
  EXPECT_EQ(together.core->stats().running, 5);
  EXPECT_EQ(sinks[4]->merged.tokens.size(), 1u);
  together.RunUntilIdle();
  for (uint64_t salt = 0; salt < 5; ++salt) {
    TestCore alone;
    const auto sink = alone.Submit(Endless(salt < 2 ? 6 : 9, salt, salt < 2 ? 30 : 12));
    alone.RunUntilIdle();
    EXPECT_EQ(Difference(sinks[salt]->merged, sink->merged), "");
  }
}

TEST(EngineCore, CancelIsHonouredWhilePendingBetweenChunksAndBetweenTokens) {
  EngineOptions options = TestCore::DefaultOptions();
  options.max_rows = 1;
  options.step_tokens = 8;
  TestCore test({}, options);
  const auto chunked = test.Submit(Endless(40, 1, 9));
  const RequestId chunked_id = test.last_id();
  const auto pending = test.Submit(Endless(4, 2, 9));
  const RequestId pending_id = test.last_id();
  const auto decoding = test.Submit(Endless(4, 3, 9));
  const RequestId decoding_id = test.last_id();
  test.core->RunOneStep();
  test.core->Cancel(pending_id);
  test.core->RunOneStep();
  ASSERT_TRUE(pending->ended());
  EXPECT_EQ(pending->merged.end->reason, FinishReason::kCancelled);
  EXPECT_TRUE(pending->merged.end->status.ok());
  EXPECT_GT(test.core->kv().used_bytes(), 0);

  test.core->Cancel(chunked_id);
  test.core->RunOneStep();  // the next one starts in the same step
  EXPECT_TRUE(chunked->ended());
  EXPECT_EQ(chunked->merged.tokens.size(), 0u);
  EXPECT_EQ(decoding->merged.tokens.size(), 1u);

  test.core->Cancel(decoding_id);
  test.core->Cancel(decoding_id);
  test.core->Cancel(12345);
  test.RunUntilIdle();
  EXPECT_EQ(decoding->merged.tokens.size(), 1u);
  EXPECT_EQ(decoding->merged.end->reason, FinishReason::kCancelled);
  EXPECT_EQ(test.core->kv().used_bytes(), 0);
  EXPECT_EQ(test.core->stats().finished_cancelled, 3u);
}

TEST(EngineCore, DeadlinesEndRunningAndWaitingRequests) {
  EngineOptions options = TestCore::DefaultOptions();
  options.max_rows = 1;
  TestCore test({}, options);
  std::vector<std::shared_ptr<testing::RecordingSink>> sinks;
  for (int i = 0; i < 2; ++i) {
    GenerationRequest request = Endless(4, 1, 50);
    request.deadline = test.now + std::chrono::seconds(5 + i);
    sinks.push_back(test.Submit(request));
  }
  test.core->RunOneStep();
  EXPECT_EQ(test.core->NextDeadline(), test.now + std::chrono::seconds(5));
  test.now += std::chrono::seconds(6);
  test.core->RunOneStep();
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->ended());
    EXPECT_EQ(sink->merged.end->reason, FinishReason::kCancelled);
    EXPECT_EQ(sink->merged.end->status.code(), StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(sinks[0]->merged.tokens.size(), 1u);
  EXPECT_TRUE(test.core->idle());
}

TEST(EngineCore, MinTokensBansTheEnds) {
  TestCore test;
  GenerationRequest request = TestRequest(5, 1, 40);
  for (TokenId id = 0; id < testing::kVocabSize - 1; ++id) request.stop_token_ids.push_back(id);
  request.min_tokens = 10;
  const auto sink = test.Submit(request);
  test.RunUntilIdle();
  EXPECT_GE(sink->merged.tokens.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sink->ids()[static_cast<size_t>(i)], 49);
}

TEST(EngineCore, NumbersAreSettledBeforeTheSinkHearsOfTheEnd) {
  TestCore test;
  const auto sink = test.Submit(Endless(5, 1, 3));
  bool seen = false;
  sink->answer = [&](int n) {
    if (n == 2) {
      seen = true;
      const EngineStats stats = test.core->stats();
      EXPECT_EQ(stats.finished_length, 1u);
      EXPECT_EQ(stats.running, 0);
      EXPECT_EQ(stats.kv_bytes_used, 0);
      EXPECT_EQ(stats.generated_tokens, 3u);
    }
    return EventSink::Answer::kReady;
  };
  test.RunUntilIdle();
  EXPECT_TRUE(seen);
}

TEST(EngineCore, StatsAddUp) {
  EngineOptions options = TestCore::DefaultOptions();
  options.max_rows = 2;
  TestCore test({}, options);
  for (uint64_t salt = 0; salt < 3; ++salt) test.Submit(Endless(5, salt, 4));
  test.core->RunOneStep();
  EngineStats stats = test.core->stats();
  EXPECT_EQ(stats.running, 2);
  EXPECT_EQ(stats.waiting, 1);
  EXPECT_GT(stats.kv_bytes_reserved, stats.kv_bytes_used);
  EXPECT_LE(stats.kv_bytes_reserved, stats.kv_bytes_budget);
  EXPECT_LE(stats.kv_bytes_budget, options.kv_bytes);
  test.now += std::chrono::milliseconds(300);
  test.RunUntilIdle();
  stats = test.core->stats();
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.submitted, 3u);
  EXPECT_EQ(stats.finished_length, 3u);
  EXPECT_EQ(stats.prompt_tokens, 15u);
  EXPECT_EQ(stats.generated_tokens, 12u);
  EXPECT_EQ(stats.steps, 8u);
  EXPECT_EQ(stats.time_to_first_token.count, 3u);
  EXPECT_EQ(stats.inter_token.count, 9u);
  EXPECT_DOUBLE_EQ(stats.inter_token.sum, 0.6);
  EXPECT_EQ(stats.queue_wait.count, 3u);
  EXPECT_DOUBLE_EQ(stats.queue_wait.sum, 0.3);
  EXPECT_EQ(stats.end_to_end.count, 3u);
}

// Without max_tokens the rest of the context is reserved: others wait, and the counters say why.
TEST(EngineCore, WhatTheFirstWaitingRequestLacksIsShown) {
  FakeOptions fake;
  fake.max_context = 200;
  EngineOptions options = TestCore::DefaultOptions();
  options.kv_bytes = 8 << 10;  // two whole contexts do not fit
  options.max_rows = 2;
  TestCore test(fake, options);
  const auto open_ended = test.Submit(Endless(5, 1, -1));
  test.Submit(Endless(5, 2, -1));
  test.core->RunOneStep();
  EXPECT_EQ(test.core->stats().running, 1);
  EXPECT_EQ(test.core->stats().running_open_ended, 1);
  EXPECT_EQ(test.core->stats().waiting, 1);
  EXPECT_TRUE(test.core->stats().waits_for_memory);
  EXPECT_FALSE(test.core->stats().waits_for_row);
  test.RunUntilIdle();
  EXPECT_FALSE(test.core->stats().waits_for_memory);
  EXPECT_EQ(test.core->stats().running_open_ended, 0);

  // With max_tokens two run, and the third lacks a row.
  for (uint64_t salt = 0; salt < 3; ++salt) test.Submit(Endless(5, salt, 9));
  test.core->RunOneStep();
  EXPECT_EQ(test.core->stats().running, 2);
  EXPECT_EQ(test.core->stats().running_open_ended, 0);
  EXPECT_TRUE(test.core->stats().waits_for_row);
  EXPECT_FALSE(test.core->stats().waits_for_memory);
}

TEST(EngineCore, OptionsOutOfRangeAreNamed) {
  const auto param = [](const std::function<void(EngineOptions&)>& change) {
    EngineOptions options = TestCore::DefaultOptions();
    change(options);
    return EngineCore::Create(std::make_unique<FakeExecutor>(FakeOptions()),
                              testing::TestTokenizer(), options)
        .status()
        .param();
  };
  EXPECT_EQ(param([](EngineOptions& o) { o.max_rows = 0; }), "max_rows");
  EXPECT_EQ(param([](EngineOptions& o) { o.max_rows = 17; }), "max_rows");
  EXPECT_EQ(param([](EngineOptions& o) { o.max_queue = 0; }), "max_queue");
  EXPECT_EQ(param([](EngineOptions& o) { o.step_tokens = 7; }), "step_tokens");
  EXPECT_EQ(param([](EngineOptions& o) { o.step_tokens = 65; }), "step_tokens");
  EXPECT_EQ(param([](EngineOptions& o) { o.eos_ids = {50}; }), "eos_ids");
  EXPECT_EQ(param([](EngineOptions& o) { o.kv_bytes = 10; }), "kv_bytes");
}

TEST(Histogram, CountsByUpperBound) {
  Histogram histogram = EmptyEngineStats().inter_token;
  histogram.Add(0.01);
  histogram.Add(0.011);
  histogram.Add(1000);
  EXPECT_EQ(histogram.counts[0], 1u);
  EXPECT_EQ(histogram.counts[1], 1u);
  EXPECT_EQ(histogram.counts.back(), 1u);
  EXPECT_EQ(histogram.count, 3u);
}

}  // namespace
}  // namespace lockstep
