// Memory runs out at each allocation of the engine's thread in turn: at most the request concerned
// fails, and says so; the others' bytes are unchanged and every block comes back.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "base/log.h"
#include "engine/testing/testing.h"

namespace {

// Allocations of this thread until one fails; below 0: none does.
thread_local int until_failure = -1;
thread_local bool has_failed = false;

void* Allocate(std::size_t size) {
  if (until_failure >= 0 && until_failure-- == 0) {
    has_failed = true;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace lockstep {
namespace {

using testing::Difference;
using testing::RecordingSink;
using testing::TestCore;

constexpr int kRows = 3;

class Failing {
 public:
  explicit Failing(int after) {
    has_failed = false;
    until_failure = after;
  }
  ~Failing() { until_failure = -1; }
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;
};

// Its own allocations never fail: what is tested is the engine.
class CalmSink : public RecordingSink {
 public:
  Answer Offer(GenerationEvent event) override {
    const int kept = std::exchange(until_failure, -1);
    const Answer answer = RecordingSink::Offer(std::move(event));
    until_failure = kept;
    return answer;
  }
};

GenerationRequest RequestOf(int row) {
  GenerationRequest request = testing::TestRequest(5 + 9 * row, 7 + static_cast<uint64_t>(row), 4);
  request.ignore_eos = true;
  request.sampling.logprobs = 1;
  request.prompt_logprobs = row % 2 == 0 ? 1 : -1;
  request.stop = {"never found", "nor this"};
  return request;
}

struct Workload {
  Workload() {
    SetLogLevel(LogLevel::kOff);
    EngineOptions options = TestCore::DefaultOptions();
    options.step_tokens = 10;
    test = std::make_unique<TestCore>(FakeOptions(), options);
    for (int row = 0; row < kRows; ++row) {
      GenerationRequest request = RequestOf(row);
      request.sink = sinks.emplace_back(std::make_shared<CalmSink>());
      auto sequence = test->core->MakeSequence(std::move(request), 4, test->now);
      sequence->set_id(static_cast<RequestId>(row) + 1);
      test->core->Submit(std::move(sequence));
    }
  }
  std::unique_ptr<TestCore> test;
  std::vector<std::shared_ptr<CalmSink>> sinks;
};

std::vector<GenerationEvent> WithoutFaults() {
  Workload work;
  work.test->RunUntilIdle();
  std::vector<GenerationEvent> answers;
  for (const auto& sink : work.sinks) answers.push_back(sink->merged);
  return answers;
}

TEST(MemoryFaults, AtEveryAllocationOfEveryStep) {
  const std::vector<GenerationEvent> expected = WithoutFaults();
  int failures = 0;
  for (int turn = 0;; ++turn) {
    bool turn_exists = false;
    for (int after = 0;; ++after) {
      Workload work;
      for (int i = 0; i < turn; ++i) turn_exists = work.test->core->RunOneStep();
      if (turn > 0 && !turn_exists) break;
      {
        const Failing failing(after);
        work.test->core->RunOneStep();
      }
      if (!has_failed) break;
      ++failures;
      work.test->RunUntilIdle();
      EXPECT_TRUE(work.test->core->healthy());
      EXPECT_TRUE(work.test->core->idle());
      EXPECT_EQ(work.test->core->kv().used_bytes(), 0);
      EXPECT_EQ(work.test->core->kv().reserved_bytes(), 0);
      EXPECT_TRUE(work.test->core->kv().CheckIntegrity().ok());
      int failed = 0;
      for (int row = 0; row < kRows; ++row) {
        const GenerationEvent& answer = work.sinks[static_cast<size_t>(row)]->merged;
        ASSERT_TRUE(answer.end) << "turn " << turn << " allocation " << after;
        if (answer.end->reason == FinishReason::kError) {
          ++failed;
          EXPECT_EQ(answer.end->status.code(), StatusCode::kUnavailable);
        } else {
          EXPECT_EQ(Difference(answer, expected[static_cast<size_t>(row)]), "")
              << "turn " << turn << " allocation " << after;
        }
      }
      EXPECT_LE(failed, 1);
    }
    if (turn > 0 && !turn_exists) break;
  }
  EXPECT_GT(failures, 100);
}

// On the caller's thread: refused, and nothing is left behind.
TEST(MemoryFaults, AtEveryAllocationOfSubmit) {
  SetLogLevel(LogLevel::kOff);
  const auto engine = Engine::Create(std::make_unique<FakeExecutor>(FakeOptions()),
                                     testing::TestTokenizer(), TestCore::DefaultOptions())
                          .value();
  bool accepted = false;
  for (int after = 0; !accepted; ++after) {
    ASSERT_LT(after, 1000);
    const auto sink = std::make_shared<CalmSink>();
    GenerationRequest request = RequestOf(0);
    request.sink = sink;
    Result<RequestId> id = RequestId{0};
    {
      const Failing failing(after);
      id = engine->Submit(std::move(request));
    }
    accepted = id.ok();
    if (!accepted) {
      EXPECT_EQ(id.status().code(), StatusCode::kUnavailable);
      EXPECT_EQ(sink->offers, 0);
    }
  }
  engine->Drain(std::chrono::steady_clock::time_point::max());
  EXPECT_EQ(engine->stats().submitted, 1u);
  EXPECT_EQ(engine->stats().finished_length, 1u);
}

}  // namespace
}  // namespace lockstep
