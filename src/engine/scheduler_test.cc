#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::kEos;
using testing::TestRequest;
using testing::TestTokenizer;

class SchedulerTest : public ::testing::Test {
 protected:
  void Make(int64_t cache_tokens, int32_t max_rows, int32_t step_tokens,
            std::function<int32_t(int32_t)> cut = {}) {
    kv_ = KvManager::Create({{CacheKind::kPaged, 1, 1, "fake"}}, cache_tokens).value();
    scheduler_ = std::make_unique<Scheduler>(kv_.get(), max_rows, step_tokens, std::move(cut));
  }

  Sequence* Add(int prompt, int max_tokens) {
    ++last_id_;
    auto sequence = std::make_unique<Sequence>(last_id_, TestRequest(prompt, last_id_, max_tokens),
                                               max_tokens, TestTokenizer(),
                                               std::vector<TokenId>{kEos}, Sequence::TimePoint());
    Sequence* const raw = sequence.get();
    scheduler_->Add(std::move(sequence));
    return raw;
  }

  std::vector<Sequence*> Admit() {
    std::vector<Sequence*> started;
    scheduler_->Admit(&started);
    return started;
  }

  // The counts planned for each sequence, in the order given; the rows' results are taken over.
  std::vector<int32_t> Step(const std::vector<Sequence*>& sequences,
                            int32_t prompt_tokens = std::numeric_limits<int32_t>::max()) {
    StepPlan plan;
    scheduler_->Plan(&plan, prompt_tokens);
    std::vector<int32_t> counts(sequences.size(), 0);
    int32_t tokens = 0;
    for (const PlannedRow& row : plan.rows) {
      tokens += row.count;
      EXPECT_EQ(row.begin, row.sequence->computed());
      EXPECT_EQ(row.sample, row.count == row.sequence->uncomputed());
      for (size_t i = 0; i < sequences.size(); ++i) {
        if (sequences[i] == row.sequence) counts[i] = row.count;
      }
      RowOutput output;
      output.token = 5;
      GenerationEvent event;
      row.sequence->Advance(row.count, &output, &event);
      const std::vector<TokenId>& tokens = row.sequence->tokens();
      kv_->Commit(row.sequence->slot(), std::span(tokens).first(row.sequence->computed()));
    }
    EXPECT_EQ(tokens, plan.tokens);
    return counts;
  }

  RequestId last_id_ = 0;
  std::unique_ptr<KvManager> kv_;
  std::unique_ptr<Scheduler> scheduler_;
};

using Counts = std::vector<int32_t>;

TEST_F(SchedulerTest, PromptsAreHeldBackOnlyWhileRowsDecode) {
  Make(1000, 4, 64);
  Sequence* const first = Add(20, 10);
  Admit();
  EXPECT_EQ(Step({first}, 6), (std::vector<int32_t>{20}));
  Sequence* const second = Add(100, 10);
  Sequence* const third = Add(100, 10);
  Admit();
  EXPECT_EQ(Step({first, second, third}, 6), (std::vector<int32_t>{1, 3, 3}));
  EXPECT_EQ(Step({first, second, third}, 1), (std::vector<int32_t>{1, 1, 0}));
  EXPECT_EQ(Step({first, second, third}), (std::vector<int32_t>{1, 32, 31}));
  scheduler_->Remove(first);
  EXPECT_EQ(Step({second, third}, 6), (std::vector<int32_t>{32, 32}));
}

TEST_F(SchedulerTest, RunningRowsComeFirstThenSeveralPrompts) {
  Make(1000, 8, 10);
  Sequence* a = Add(3, 50);
  Admit();
  EXPECT_EQ(Step({a}), Counts({3}));
  Sequence* b = Add(4, 50);
  Sequence* c = Add(2, 50);
  Admit();
  EXPECT_EQ(Step({a, b, c}), Counts({1, 4, 2}));
  EXPECT_EQ(Step({a, b, c}), Counts({1, 1, 1}));
}

TEST_F(SchedulerTest, ALongPromptTakesHalfAndWhatTheOthersLeave) {
  Make(1000, 8, 9);
  Sequence* a = Add(100, 1);
  Admit();
  EXPECT_EQ(Step({a}), Counts({9}));
  Sequence* b = Add(30, 9);
  Sequence* c = Add(3, 9);
  Admit();
  EXPECT_EQ(Step({a, b, c}), Counts({5, 1, 3}));  // the shortest passes
  EXPECT_EQ(Step({a, b, c}), Counts({4, 4, 1}));
}

TEST_F(SchedulerTest, TheOldestPromptAdvancesUnderAFloodOfShortOnes) {
  Make(100000, 4, 8);
  Sequence* a = Add(40, 1);
  for (int step = 0; step < 10; ++step) {
    for (int i = 0; i < 4; ++i) Add(4, 1);
    Admit();
    EXPECT_GE(Step({a})[0], 4);
    std::vector<Sequence*> done;
    for (const auto& sequence : scheduler_->running()) {
      if (!sequence->live()) done.push_back(sequence.get());
    }
    for (Sequence* sequence : done) scheduler_->Remove(sequence);
    if (std::find(done.begin(), done.end(), a) != done.end()) return;
  }
  FAIL() << "the long prompt was starved";
}

TEST_F(SchedulerTest, NobodyOvertakesTheOneThatWaitsForMemory) {
  Make(20, 8, 16);
  Sequence* a = Add(5, 5);
  Sequence* b = Add(5, 10);  // does not fit beside a
  Sequence* c = Add(1, 1);   // would
  EXPECT_EQ(Admit(), std::vector<Sequence*>({a}));
  EXPECT_EQ(Admit(), std::vector<Sequence*>());
  EXPECT_EQ(kv_->reserved_bytes(), 10);
  scheduler_->Remove(a);
  EXPECT_EQ(Admit(), std::vector<Sequence*>({b, c}));
}

TEST_F(SchedulerTest, RowsAreBounded) {
  Make(1000, 2, 16);
  Sequence* a = Add(5, 5);
  Sequence* b = Add(5, 5);
  Sequence* c = Add(5, 5);
  EXPECT_EQ(Admit(), std::vector<Sequence*>({a, b}));
  scheduler_->Remove(b);
  EXPECT_EQ(Admit(), std::vector<Sequence*>({c}));
}

TEST_F(SchedulerTest, APausedRowKeepsItsBlocksAndTakesNoStep) {
  Make(1000, 4, 16);
  Sequence* a = Add(5, 5);
  Sequence* b = Add(5, 5);
  Admit();
  Step({a, b});
  a->set_paused(true);
  const int64_t used = kv_->used_bytes();
  EXPECT_EQ(Step({a, b}), Counts({0, 1}));
  EXPECT_EQ(kv_->used_bytes(), used + 1);
  a->set_paused(false);
  EXPECT_EQ(Step({a, b}), Counts({1, 1}));
}

TEST_F(SchedulerTest, PlanningTwiceGivesTheSamePlan) {
  Make(1000, 4, 8);
  Add(20, 5);
  Add(6, 5);
  Admit();
  StepPlan first;
  StepPlan second;
  scheduler_->Plan(&first);
  const int64_t used = kv_->used_bytes();
  scheduler_->Plan(&second);
  ASSERT_EQ(first.rows.size(), second.rows.size());
  for (size_t i = 0; i < first.rows.size(); ++i) {
    EXPECT_EQ(first.rows[i].sequence, second.rows[i].sequence);
    EXPECT_EQ(first.rows[i].begin, second.rows[i].begin);
    EXPECT_EQ(first.rows[i].count, second.rows[i].count);
  }
  EXPECT_EQ(kv_->used_bytes(), used);
}

TEST_F(SchedulerTest, ChunksAreCutWhereTheTestSays) {
  Make(1000, 4, 8, [](int32_t) { return 3; });
  Sequence* a = Add(7, 5);
  Admit();
  EXPECT_EQ(Step({a}), Counts({3}));
  EXPECT_EQ(Step({a}), Counts({3}));
  EXPECT_EQ(Step({a}), Counts({1}));
}

}  // namespace
}  // namespace lockstep
