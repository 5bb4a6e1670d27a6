// One thing goes wrong at each point of a small workload in turn; whoever it does not concern gets
// the bytes it gets alone, and every block comes back.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "base/log.h"
#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::Difference;
using testing::RecordingSink;
using testing::TestCore;

constexpr int kRows = 4;
constexpr int kVictim = 1;

GenerationRequest RequestOf(int row) {
  GenerationRequest request = testing::TestRequest(6 + 9 * row, 77 + static_cast<uint64_t>(row), 8);
  request.ignore_eos = true;
  request.sampling.logprobs = 1;
  request.prompt_logprobs = row % 2 == 0 ? 1 : -1;
  return request;
}

GenerationEvent Alone(int row) { return testing::AnswerAlone(RequestOf(row)); }

// The victim and a neighbour run; two more join in the third step. Prompts take several chunks.
struct Workload {
  explicit Workload(FakeOptions fake = {}) : test(std::move(fake), Options()) {
    SetLogLevel(LogLevel::kOff);
    for (int row = 0; row < 2; ++row) Submit(row);
  }
  static EngineOptions Options() {
    EngineOptions options = TestCore::DefaultOptions();
    options.step_tokens = 10;
    return options;
  }
  void Submit(int row) {
    sinks.push_back(test.Submit(RequestOf(row)));
    ids.push_back(test.last_id());
  }
  // One turn; false once there is nothing left to do.
  bool Turn() {
    if (++turns == 3) {
      for (int row = 2; row < kRows; ++row) Submit(row);
    }
    return test.core->RunOneStep() || turns < 3;
  }
  void Finish() {
    while (Turn()) {
    }
  }
  // All but the victim are as alone, and nothing is left behind.
  void ExpectOthersUnharmed() {
    for (int row = 0; row < kRows; ++row) {
      if (row == kVictim) continue;
      EXPECT_EQ(Difference(sinks[row]->merged, Alone(row)), "") << row;
    }
    ExpectNothingLeft();
  }
  void ExpectAllAsAlone() {
    EXPECT_EQ(Difference(sinks[kVictim]->merged, Alone(kVictim)), "");
    ExpectOthersUnharmed();
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(test.core->idle());
    EXPECT_EQ(test.core->kv().used_bytes(), 0);
    EXPECT_EQ(test.core->kv().reserved_bytes(), 0);
    EXPECT_TRUE(test.core->kv().CheckIntegrity().ok());
  }

  TestCore test;
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  std::vector<RequestId> ids;
  int turns = 0;
};

int StepsWithoutFaults() {
  Workload work;
  work.Finish();
  work.ExpectAllAsAlone();
  return static_cast<int>(work.test.core->stats().steps);
}

TEST(EngineCoreFaults, AStepThatFailsIsComputedAgainWithTheSameBytes) {
  const int steps = StepsWithoutFaults();
  ASSERT_GT(steps, 12);
  for (int how = 0; how < 3; ++how) {
    for (int bad = 0; bad < steps; ++bad) {
      int left = EngineCore::kMaxStepAttempts - 1;
      FakeOptions fake;
      fake.before_step = [&](int64_t n, const StepInput&) {
        if (n < bad || left == 0) return OkStatus();
        --left;
        if (how == 1) throw std::runtime_error("no memory for the step");
        if (how == 2) throw 42;
        return Internal("the device is gone");
      };
      Workload work(fake);
      work.Finish();
      work.ExpectAllAsAlone();
      EXPECT_TRUE(work.test.core->healthy());
    }
  }
}

TEST(EngineCoreFaults, StepsThatKeepFailingEndTheEngine) {
  const int steps = StepsWithoutFaults();
  for (int bad = 0; bad < steps; ++bad) {
    FakeOptions fake;
    fake.before_step = [&](int64_t n, const StepInput&) {
      return n < bad ? OkStatus() : Internal("the device is gone");
    };
    EngineOptions options = Workload::Options();
    int fatal = 0;
    options.on_fatal = [&](const Status& status) {
      ++fatal;
      EXPECT_NE(status.message().find("the device is gone"), std::string::npos);
    };
    TestCore test(fake, options);
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    for (int row = 0; row < kRows; ++row) sinks.push_back(test.Submit(RequestOf(row)));
    test.RunUntilIdle();
    EXPECT_FALSE(test.core->healthy());
    EXPECT_EQ(fatal, 1);
    int failed = 0;
    for (const auto& sink : sinks) {
      ASSERT_TRUE(sink->ended());
      if (sink->merged.end->reason == FinishReason::kError) {
        ++failed;
        EXPECT_FALSE(sink->merged.end->status.ok());
      }
    }
    EXPECT_GT(failed, 0);
    EXPECT_EQ(test.core->kv().reserved_bytes(), 0);
    // A dead core answers, and computes nothing.
    const uint64_t steps_before = test.core->stats().steps;
    const auto late = test.Submit(RequestOf(0));
    test.RunUntilIdle();
    ASSERT_TRUE(late->ended());
    EXPECT_EQ(late->merged.end->reason, FinishReason::kError);
    EXPECT_EQ(test.core->stats().steps, steps_before);
    EXPECT_EQ(fatal, 1);
  }
}

TEST(EngineCoreFaults, ARowThatFailsEndsAlone) {
  for (int output = 0; output < 8; ++output) {
    FakeOptions fake;
    fake.row_status = [&](int64_t, const StepRow& row) {
      const bool victim =
          row.sampling != nullptr && row.sampling->seed == RequestOf(kVictim).sampling.seed;
      return victim && static_cast<int>(row.sequence.size()) - row.prompt_tokens == output
                 ? Internal("a logit is not a number")
                 : OkStatus();
    };
    Workload work(fake);
    work.Finish();
    const GenerationEvent& victim = work.sinks[kVictim]->merged;
    ASSERT_TRUE(victim.end);
    EXPECT_EQ(victim.end->reason, FinishReason::kError);
    EXPECT_EQ(victim.end->status.message(), "a logit is not a number");
    EXPECT_EQ(static_cast<int>(victim.tokens.size()), output);
    work.ExpectOthersUnharmed();
    EXPECT_EQ(work.test.core->stats().finished_error, 1u);
  }
}

TEST(EngineCoreFaults, ASinkThatThrowsOrClosesEndsItsOwnRow) {
  for (int how = 0; how < 3; ++how) {
    for (int offer = 0; offer < 8; ++offer) {
      Workload work;
      work.sinks[kVictim]->answer = [&](int n) {
        if (n < offer) return EventSink::Answer::kReady;
        if (how == 1) throw std::runtime_error("the consumer failed");
        if (how == 2) throw 42;
        return EventSink::Answer::kClosed;
      };
      work.Finish();
      work.ExpectOthersUnharmed();
      EXPECT_EQ(work.sinks[kVictim]->offers, offer + 1);  // nobody is asked again
      // The last offer is the end itself: it was finished all the same.
      EXPECT_EQ(work.test.core->stats().finished_cancelled, offer == 7 ? 0u : 1u);
    }
  }
}

TEST(EngineCoreFaults, AFullSinkPausesItsRowWithoutChangingAByte) {
  for (int offer = 0; offer < 8; ++offer) {
    Workload work;
    RecordingSink* const victim = work.sinks[kVictim].get();
    victim->answer = [&](int n) {
      if (n != offer) return EventSink::Answer::kReady;
      victim->is_ready = false;
      return EventSink::Answer::kFull;
    };
    work.Finish();
    EXPECT_EQ(victim->offers, offer + 1);
    if (offer < 7) {
      EXPECT_FALSE(work.test.core->idle());
      EXPECT_GT(work.test.core->kv().used_bytes(), 0);
      EXPECT_FALSE(work.test.core->RunOneStep());  // parks, spins not
      victim->is_ready = true;
      work.Finish();
    }
    work.ExpectAllAsAlone();
  }
}

TEST(EngineCoreFaults, CancelAtEveryBoundary) {
  const int steps = StepsWithoutFaults();
  for (int at = 0; at <= steps; ++at) {
    Workload work;
    for (int turn = 0; turn < at; ++turn) work.Turn();
    const bool over = work.sinks[kVictim]->ended();
    const int64_t reserved = work.test.core->kv().reserved_bytes();
    work.test.core->Cancel(work.ids[kVictim]);
    work.Turn();
    ASSERT_TRUE(work.sinks[kVictim]->ended());
    // Within one step; nothing is admitted before the first, and two more rows join in the third.
    if (!over && at > 0 && at != 2) {
      EXPECT_LT(work.test.core->kv().reserved_bytes(), reserved);
    }
    work.Finish();
    EXPECT_EQ(work.sinks[kVictim]->merged.end->reason,
              over ? FinishReason::kLength : FinishReason::kCancelled);
    work.ExpectOthersUnharmed();
  }
}

TEST(EngineCoreFaults, CancelOfAPausedRow) {
  Workload work;
  RecordingSink* const victim = work.sinks[kVictim].get();
  victim->is_ready = false;
  victim->answer = [](int) { return EventSink::Answer::kFull; };
  work.Finish();
  EXPECT_FALSE(victim->ended());
  work.test.core->Cancel(work.ids[kVictim]);
  work.Finish();
  EXPECT_EQ(victim->merged.end->reason, FinishReason::kCancelled);
  EXPECT_EQ(victim->merged.tokens.size(), 1u);
  work.ExpectOthersUnharmed();
}

TEST(EngineCoreFaults, SubmitAndCancelFromWithinOffer) {
  Workload work;
  std::shared_ptr<RecordingSink> child;
  work.sinks[kVictim]->answer = [&](int n) {
    if (n == 0) child = work.test.Submit(RequestOf(3));
    if (n == 2) work.test.core->Cancel(work.ids[kVictim]);
    return EventSink::Answer::kReady;
  };
  work.Finish();
  EXPECT_EQ(work.sinks[kVictim]->merged.tokens.size(), 3u);
  EXPECT_EQ(work.sinks[kVictim]->merged.end->reason, FinishReason::kCancelled);
  ASSERT_TRUE(child);
  EXPECT_EQ(Difference(child->merged, Alone(3)), "");
  work.ExpectOthersUnharmed();
}

}  // namespace
}  // namespace lockstep
