// Faults that need the engine's thread.
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "base/log.h"
#include "engine/collect.h"
#include "engine/engine.h"
#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::RecordingSink;
using testing::TestCore;

std::unique_ptr<Engine> MakeEngine(FakeOptions fake,
                                   EngineOptions options = TestCore::DefaultOptions()) {
  SetLogLevel(LogLevel::kOff);
  return Engine::Create(std::make_unique<FakeExecutor>(std::move(fake)), testing::TestTokenizer(),
                        std::move(options))
      .value();
}

GenerationRequest Endless(uint64_t salt, int max_tokens) {
  GenerationRequest request = testing::TestRequest(9, salt, max_tokens);
  request.ignore_eos = true;
  return request;
}

TEST(EngineFaults, ADeadLoopSaysSoAndRefuses) {
  FakeOptions fake;
  fake.before_step = [](int64_t n, const StepInput&) {
    return n < 4 ? OkStatus() : Internal("the device is gone");
  };
  EngineOptions options = TestCore::DefaultOptions();
  std::promise<Status> fatal;
  options.on_fatal = [&](const Status& status) { fatal.set_value(status); };
  const auto engine = MakeEngine(fake, options);
  EXPECT_TRUE(engine->healthy());
  const auto answer = Collect(*engine, Endless(1, 100));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->end.reason, FinishReason::kError);
  EXPECT_EQ(answer->tokens.size(), 4u);
  EXPECT_EQ(fatal.get_future().get().code(), StatusCode::kInternal);
  EXPECT_FALSE(engine->healthy());
  EXPECT_EQ(Collect(*engine, Endless(2, 5)).status().code(), StatusCode::kUnavailable);
  engine->Cancel(1);
  engine->Wake();
  engine->Drain(std::chrono::steady_clock::now());
}

TEST(EngineFaults, DrainWithADeadlineEndsRowsThatStepsDoNotReach) {
  // Every sink is full for good: nothing runs, and only the deadline ends it.
  const auto engine = MakeEngine({});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (uint64_t salt = 0; salt < 12; ++salt) {
    sinks.push_back(std::make_shared<RecordingSink>());
    sinks.back()->is_ready = false;
    sinks.back()->answer = [](int) { return EventSink::Answer::kFull; };
    GenerationRequest request = Endless(salt, 50);
    request.sink = sinks.back();
    ASSERT_TRUE(engine->Submit(std::move(request)).ok());
  }
  engine->Drain(std::chrono::steady_clock::now() + std::chrono::milliseconds(10));
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->ended());
    EXPECT_EQ(sink->merged.end->reason, FinishReason::kCancelled);
    EXPECT_EQ(sink->merged.end->status.code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(engine->stats().kv_bytes_reserved, 0);
}

TEST(EngineFaults, DrainFromWithinASinkDoesNotDeadlock) {
  const auto engine = MakeEngine({});
  std::promise<void> ended;
  const auto sink = std::make_shared<RecordingSink>();
  RecordingSink* const raw = sink.get();
  sink->answer = [&engine, &ended, raw](int n) {
    if (n == 0) engine->Drain(std::chrono::steady_clock::time_point::max());
    if (raw->ended()) ended.set_value();
    return EventSink::Answer::kReady;
  };
  GenerationRequest request = Endless(1, 5);
  request.sink = sink;
  ASSERT_TRUE(engine->Submit(std::move(request)).ok());
  ended.get_future().wait();
  EXPECT_EQ(sink->merged.end->reason, FinishReason::kLength);
  EXPECT_EQ(Collect(*engine, Endless(2, 5)).status().code(), StatusCode::kUnavailable);
}

TEST(EngineFaults, AClosedConsumerOfAPausedRowFreesIt) {
  const auto engine = MakeEngine({});
  std::promise<void> full;
  const auto sink =
      std::make_shared<BoundedSink>(1, [&] { full.set_value(); }, [&] { engine->Wake(); });
  GenerationRequest request = Endless(1, 100);
  request.sink = sink;
  ASSERT_TRUE(engine->Submit(std::move(request)).ok());
  full.get_future().wait();
  sink->Close();
  engine->Drain(std::chrono::steady_clock::time_point::max());
  EXPECT_EQ(engine->stats().finished_cancelled, 1u);
  EXPECT_EQ(engine->stats().kv_bytes_reserved, 0);
}

TEST(EngineFaults, ACacheThatCannotBeHadIsAnErrorOfCreate) {
  class NoMemory : public FakeExecutor {
   public:
    using FakeExecutor::FakeExecutor;
    Status AllocateCache(const std::vector<int32_t>&) override {
      return ResourceExhausted("no memory for the cache");
    }
  };
  const auto engine = Engine::Create(std::make_unique<NoMemory>(FakeOptions()),
                                     testing::TestTokenizer(), TestCore::DefaultOptions());
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lockstep
