// Rows that make every step fail which they take part in: they are found and end alone.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/log.h"
#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::Difference;
using testing::RecordingSink;
using testing::TestCore;

constexpr int kRows = 8;

GenerationRequest RequestOf(int row) {
  GenerationRequest request =
      testing::TestRequest(6 + 5 * row, 77 + static_cast<uint64_t>(row), 6 + row % 3);
  request.ignore_eos = true;
  request.sampling.logprobs = 1;
  request.sampling.temperature = row % 2 == 0 ? 0.0f : 1.0f;
  return request;
}

GenerationEvent Alone(int row) { return testing::AnswerAlone(RequestOf(row)); }

bool IsOf(const StepRow& row, int index) {
  const std::vector<TokenId> prompt = RequestOf(index).prompt;
  return row.sequence.size() >= prompt.size() &&
         std::equal(prompt.begin(), prompt.end(), row.sequence.begin());
}

enum class How { kStatus, kException, kBadAlloc };

// Steps with a row of `guilty` in them fail once that row has so many tokens.
FakeOptions Poisoned(std::set<int> guilty, int from_tokens, How how) {
  FakeOptions fake;
  fake.before_step = [=](int64_t, const StepInput& input) {
    for (const StepRow& row : input.rows) {
      for (const int index : guilty) {
        if (!IsOf(row, index) || row.begin + row.count < from_tokens) continue;
        if (how == How::kException) throw std::runtime_error("this row broke it");
        if (how == How::kBadAlloc) throw std::bad_alloc();
        return Internal("this row broke it");
      }
    }
    return OkStatus();
  };
  return fake;
}

struct Crowd {
  Crowd(const FakeOptions& fake, int rows) {
    SetLogLevel(LogLevel::kOff);
    EngineOptions options = TestCore::DefaultOptions();
    options.step_tokens = 24;
    options.on_fatal = [this](const Status&) { ++fatal; };
    test = std::make_unique<TestCore>(fake, options);
    for (int row = 0; row < rows; ++row) sinks.push_back(test->Submit(RequestOf(row)));
    test->RunUntilIdle();
    EXPECT_EQ(test->core->kv().used_bytes(), 0);
    EXPECT_EQ(test->core->kv().reserved_bytes(), 0);
    EXPECT_TRUE(test->core->kv().CheckIntegrity().ok());
    EXPECT_TRUE(test->core->idle());
  }
  std::unique_ptr<TestCore> test;
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  int fatal = 0;
};

void ExpectOnlyTheGuiltyFail(const std::set<int>& guilty, int from_tokens, How how) {
  Crowd run(Poisoned(guilty, from_tokens, how), kRows);
  EXPECT_TRUE(run.test->core->healthy());
  EXPECT_EQ(run.fatal, 0);
  for (int row = 0; row < kRows; ++row) {
    const GenerationEvent& answer = run.sinks[static_cast<size_t>(row)]->merged;
    ASSERT_TRUE(answer.end);
    const GenerationEvent alone = Alone(row);
    if (guilty.contains(row)) {
      EXPECT_EQ(answer.end->reason, FinishReason::kError);
      EXPECT_FALSE(answer.end->status.ok());
      // What came before the fault is what would have come anyway.
      EXPECT_TRUE(alone.text.starts_with(answer.text));
    } else {
      EXPECT_EQ(Difference(answer, alone), "") << row;
    }
  }
  EXPECT_EQ(run.test->core->stats().finished_error, guilty.size());
}

TEST(GuiltyRows, OneAmongManyEndsAlone) {
  for (const How how : {How::kStatus, How::kException, How::kBadAlloc}) {
    for (int row = 0; row < kRows; ++row) {
      for (const int from_tokens : {1, 20, 44}) {
        const int worst =
            static_cast<int>(RequestOf(row).prompt.size()) + RequestOf(row).max_tokens;
        if (from_tokens < worst) ExpectOnlyTheGuiltyFail({row}, from_tokens, how);
      }
    }
  }
}

TEST(GuiltyRows, SeveralAreAllFound) {
  for (int mask = 1; mask < (1 << kRows) - 1; mask += 6) {
    std::set<int> guilty;
    for (int row = 0; row < kRows; ++row) {
      if ((mask >> row & 1) != 0) guilty.insert(row);
    }
    ExpectOnlyTheGuiltyFail(guilty, 1, How::kStatus);
  }
}

TEST(GuiltyRows, AllOfThemFailAndTheEngineGoesOn) {
  std::set<int> guilty;
  for (int row = 0; row < kRows; ++row) guilty.insert(row);
  ExpectOnlyTheGuiltyFail(guilty, 1, How::kStatus);
}

TEST(GuiltyRows, OneThatIsAloneIsNotTakenForADeadDevice) {
  for (int times = 0; times < 2; ++times) {
    Crowd run(Poisoned({0}, 1, How::kStatus), 1);
    EXPECT_TRUE(run.test->core->healthy());
    EXPECT_EQ(run.sinks[0]->merged.end->reason, FinishReason::kError);
    const auto next = run.test->Submit(RequestOf(1));
    run.test->RunUntilIdle();
    EXPECT_EQ(Difference(next->merged, Alone(1)), "");
  }
}

// Two that are harmless alone and fail together: neither is at fault.
TEST(GuiltyRows, RowsThatOnlyFailTogetherBothGoOn) {
  FakeOptions fake;
  fake.before_step = [](int64_t, const StepInput& input) {
    int found = 0;
    for (const StepRow& row : input.rows) found += IsOf(row, 2) || IsOf(row, 5) ? 1 : 0;
    return found == 2 ? Internal("too much at once") : OkStatus();
  };
  Crowd run(fake, kRows);
  for (int row = 0; row < kRows; ++row) {
    EXPECT_EQ(Difference(run.sinks[static_cast<size_t>(row)]->merged, Alone(row)), "");
  }
}

}  // namespace
}  // namespace lockstep
