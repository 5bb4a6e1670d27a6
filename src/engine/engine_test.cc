// The engine on its own thread. What a single thread can show is in engine_core_test.cc.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <thread>

#include "engine/collect.h"
#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::Difference;
using testing::RecordingSink;
using testing::TestCore;
using testing::TestRequest;

std::unique_ptr<Engine> MakeEngine(FakeOptions fake = {},
                                   EngineOptions options = TestCore::DefaultOptions()) {
  return Engine::Create(std::make_unique<FakeExecutor>(std::move(fake)), testing::TestTokenizer(),
                        std::move(options))
      .value();
}

GenerationRequest Endless(int prompt, uint64_t salt, int max_tokens) {
  GenerationRequest request = TestRequest(prompt, salt, max_tokens);
  request.ignore_eos = true;
  return request;
}

// Holds every step until it is opened.
struct Gate {
  std::latch latch{1};
  FakeOptions Fake() {
    FakeOptions fake;
    fake.before_step = [this](int64_t, const StepInput&) {
      latch.wait();
      return OkStatus();
    };
    return fake;
  }
};

// A sink whose end can be waited for.
class WaitingSink : public RecordingSink {
 public:
  Answer Offer(GenerationEvent event) override {
    const Answer reply = RecordingSink::Offer(std::move(event));
    if (ended()) promise_.set_value();
    return reply;
  }
  void Wait() { promise_.get_future().wait(); }

 private:
  std::promise<void> promise_;
};

TEST(Engine, ManyThreadsGetTheAnswersTheyWouldGetAlone) {
  const auto engine = MakeEngine();
  constexpr int kThreads = 8;
  std::vector<std::string> problems(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 10; ++i) {
        const uint64_t salt = static_cast<uint64_t>(t) * 100 + i;
        const auto answer = Collect(*engine, Endless(5 + t, salt, 12));
        TestCore alone;
        const auto sink = alone.Submit(Endless(5 + t, salt, 12));
        alone.RunUntilIdle();
        GenerationEvent whole{answer->text, answer->tokens, answer->prompt, answer->end};
        problems[static_cast<size_t>(t)] += Difference(whole, sink->merged);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.finished_length, 80u);
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.kv_bytes_reserved, 0);
}

TEST(Engine, ErrorsComeFromSubmitBeforeAnyEvent) {
  const auto engine = MakeEngine();
  const auto sink = std::make_shared<RecordingSink>();
  GenerationRequest request = TestRequest(300, 1, 5);
  request.sink = sink;
  EXPECT_EQ(engine->Submit(request).status().code(), StatusCode::kContextLength);
  request.prompt.clear();
  EXPECT_EQ(engine->Submit(request).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(sink->offers, 0);
}

TEST(Engine, AFullQueueRefusesAndFreesItselfAgain) {
  Gate gate;
  EngineOptions options = TestCore::DefaultOptions();
  options.max_rows = 2;
  options.max_queue = 3;
  const auto engine = MakeEngine(gate.Fake(), options);
  std::vector<std::shared_ptr<WaitingSink>> sinks;
  const auto submit = [&] {
    sinks.push_back(std::make_shared<WaitingSink>());
    GenerationRequest request = Endless(4, sinks.size(), 3);
    request.sink = sinks.back();
    return engine->Submit(std::move(request)).status();
  };
  // Two rows and three places in the queue, however much the loop has seen of it.
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(submit().ok());
  EXPECT_EQ(submit().code(), StatusCode::kQueueFull);
  sinks.pop_back();
  gate.latch.count_down();
  for (const auto& sink : sinks) sink->Wait();
  EXPECT_TRUE(submit().ok());
  sinks.back()->Wait();
}

TEST(Engine, SeedsAreDrawnWhenAbsentAndKeptWhenGiven) {
  const auto engine = MakeEngine();
  const auto text = [&](std::optional<uint64_t> seed) {
    GenerationRequest request = Endless(5, 1, 30);
    request.seed = seed;
    return Collect(*engine, request)->text;
  };
  EXPECT_EQ(text(7), text(7));
  EXPECT_NE(text(7), text(8));
  EXPECT_NE(text({}), text({}));
}

TEST(Engine, SubmitAndCancelFromWithinASink) {
  const auto engine = MakeEngine();
  const auto second = std::make_shared<WaitingSink>();
  const auto first = std::make_shared<WaitingSink>();
  std::atomic<RequestId> first_id = 0;
  std::latch submitted{1};
  first->answer = [&](int n) {
    if (n == 0) {
      GenerationRequest request = Endless(6, 2, 5);
      request.sink = second;
      EXPECT_TRUE(engine->Submit(std::move(request)).ok());
      submitted.wait();
      engine->Cancel(first_id);
      engine->Wake();
      EXPECT_TRUE(engine->healthy());
      EXPECT_EQ(engine->stats().running, 1);
    }
    return EventSink::Answer::kReady;
  };
  GenerationRequest request = Endless(5, 1, 100);
  request.sink = first;
  first_id = engine->Submit(std::move(request)).value();
  submitted.count_down();
  first->Wait();
  second->Wait();
  EXPECT_EQ(first->merged.end->reason, FinishReason::kCancelled);
  EXPECT_LE(first->merged.tokens.size(), 2u);
  EXPECT_EQ(second->merged.end->reason, FinishReason::kLength);
}

TEST(Engine, ASlowConsumerLosesNothing) {
  const auto engine = MakeEngine();
  std::atomic<int> readable = 0;
  const auto sink = std::make_shared<BoundedSink>(
      2,
      [&] {
        ++readable;
        readable.notify_one();
      },
      [&] { engine->Wake(); });
  GenerationRequest request = Endless(5, 1, 40);
  request.sink = sink;
  ASSERT_TRUE(engine->Submit(request).ok());
  GenerationEvent whole;
  int seen = 0;
  while (!whole.end) {
    readable.wait(seen);
    seen = readable;
    while (auto event = sink->Pop()) {
      EXPECT_LE(event->tokens.size(), 2u);
      MergeEvent(*std::move(event), &whole);
      if (whole.end) break;
    }
  }
  TestCore alone;
  const auto expected = alone.Submit(Endless(5, 1, 40));
  alone.RunUntilIdle();
  EXPECT_EQ(Difference(whole, expected->merged), "");
}

TEST(Engine, DrainLetsWhatRunsFinish) {
  const auto engine = MakeEngine();
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (uint64_t salt = 0; salt < 20; ++salt) {
    sinks.push_back(std::make_shared<RecordingSink>());
    GenerationRequest request = Endless(5, salt, 10);
    request.sink = sinks.back();
    ASSERT_TRUE(engine->Submit(std::move(request)).ok());
  }
  engine->Drain(std::chrono::steady_clock::time_point::max());
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->ended());
    EXPECT_EQ(sink->merged.end->reason, FinishReason::kLength);
  }
  GenerationRequest late = Endless(5, 1, 1);
  late.sink = std::make_shared<RecordingSink>();
  EXPECT_EQ(engine->Submit(std::move(late)).status().code(), StatusCode::kUnavailable);
  engine->Drain(std::chrono::steady_clock::now());
}

TEST(Engine, DrainCancelsTheRestAtItsDeadline) {
  const auto engine = MakeEngine();
  const auto sink = std::make_shared<RecordingSink>();
  sink->answer = [](int) { return EventSink::Answer::kFull; };
  sink->is_ready = false;  // never drained
  GenerationRequest request = Endless(5, 1, 100);
  request.sink = sink;
  ASSERT_TRUE(engine->Submit(std::move(request)).ok());
  engine->Drain(std::chrono::steady_clock::now());
  ASSERT_TRUE(sink->ended());
  EXPECT_EQ(sink->merged.end->reason, FinishReason::kCancelled);
  EXPECT_EQ(sink->merged.end->status.code(), StatusCode::kUnavailable);
}

TEST(Engine, DestructionCancelsWhatRuns) {
  const auto sink = std::make_shared<RecordingSink>();
  {
    Gate gate;
    auto engine = MakeEngine(gate.Fake());
    GenerationRequest request = Endless(5, 1, 100);
    request.sink = sink;
    ASSERT_TRUE(engine->Submit(std::move(request)).ok());
    gate.latch.count_down();
    engine.reset();
  }
  ASSERT_TRUE(sink->ended());
  EXPECT_EQ(sink->merged.end->reason, FinishReason::kCancelled);
}

TEST(Engine, ARequestsDeadlineEndsItWhenTheLoopIsParked) {
  const auto engine = MakeEngine();
  const auto sink = std::make_shared<WaitingSink>();
  sink->answer = [](int) { return EventSink::Answer::kFull; };
  sink->is_ready = false;
  GenerationRequest request = Endless(5, 1, 100);
  request.sink = sink;
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  ASSERT_TRUE(engine->Submit(std::move(request)).ok());
  sink->Wait();
  EXPECT_EQ(sink->merged.end->status.code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace lockstep
