// Prefixes that outlive the engine, over the fake executor: a block that came back wrong is a wrong
// token.
#include "engine/prefix_transfer.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/testing/memory_store.h"
#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::AnswerAlone;
using testing::Difference;
using testing::MemoryStore;
using testing::RecordingSink;
using testing::TestCore;
using testing::TestRequest;

// Spans of 16 tokens.
std::vector<CacheGroupSpec> Groups(CacheKind second) {
  return {{CacheKind::kPaged, 4, 64, "fake"}, {second, 16, 128, "fake", 20, 3}};
}

class PrefixTransferTest : public ::testing::TestWithParam<CacheKind> {
 protected:
  FakeOptions Fake() const {
    FakeOptions fake;
    fake.cache_groups = Groups(GetParam());
    return fake;
  }
  EngineOptions Options() const {
    EngineOptions options = TestCore::DefaultOptions();
    options.prefix_store = store_;
    options.step_tokens = 24;
    return options;
  }
  // An engine that begins with nothing in its cache.
  std::unique_ptr<TestCore> Restart() const {
    return std::make_unique<TestCore>(Fake(), Options());
  }
  // As long as there is something to read: a store with a thread would wake the engine.
  void RunAll(TestCore& test) const {
    do {
      test.RunUntilIdle();
    } while (store_->asked() > 0 && store_->readable > 0);
  }
  GenerationEvent Run(TestCore& test, GenerationRequest request) const {
    const auto sink = test.Submit(std::move(request));
    RunAll(test);
    return sink->merged;
  }
  GenerationEvent Cold(GenerationRequest request) const {
    TestCore test(Fake());
    return Run(test, std::move(request));
  }
  static int32_t Cached(const GenerationEvent& answer) { return answer.end->usage.cached_tokens; }

  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
};

TEST_P(PrefixTransferTest, APromptComesBackAfterARestart) {
  const auto request = [] { return TestRequest(70, 1, 10); };
  const GenerationEvent cold = Cold(request());
  auto first = Restart();
  EXPECT_EQ(Difference(Run(*first, request()), cold), "");
  EXPECT_FALSE(store_->entries.empty());
  auto second = Restart();
  const GenerationEvent again = Run(*second, request());
  EXPECT_EQ(Difference(again, cold), "");
  EXPECT_EQ(Cached(again), 64);
  EXPECT_EQ(second->core->stats().cached_tokens, 64u);
  EXPECT_EQ(second->core->stats().prompt_tokens, 70u);
  EXPECT_EQ(second->core->stats().prefix_transfer.hits, 1u);
  EXPECT_EQ(second->core->stats().prefix_transfer.tokens, 64u);
  // From memory now.
  EXPECT_EQ(Cached(Run(*second, request())), 64);
  EXPECT_EQ(second->core->stats().prefix_transfer.hits, 1u);
  EXPECT_TRUE(second->core->kv().CheckIntegrity().ok());
  EXPECT_EQ(second->core->kv().used_bytes(), 0);
}

TEST_P(PrefixTransferTest, LongerAndShorterPromptsShareIt) {
  auto first = Restart();
  Run(*first, TestRequest(70, 1, 10));
  for (const int length : {17, 33, 40, 70, 90}) {
    const auto request = [&] {
      GenerationRequest longer = TestRequest(length, 1, 10);
      longer.prompt.back() = 2;
      return longer;
    };
    auto second = Restart();
    const GenerationEvent answer = Run(*second, request());
    EXPECT_EQ(Difference(answer, Cold(request())), "") << length;
    // A state is there where the prompt was stable alone.
    if (GetParam() != CacheKind::kRecurrent) {
      EXPECT_EQ(Cached(answer), std::min(64, (length - 1) / 16 * 16)) << length;
    }
    EXPECT_TRUE(second->core->kv().CheckIntegrity().ok());
  }
}

TEST_P(PrefixTransferTest, SaltsAndPromptLogprobsAreKeptApart) {
  auto first = Restart();
  Run(*first, TestRequest(70, 1, 10));
  auto second = Restart();
  GenerationRequest salted = TestRequest(70, 1, 10);
  salted.cache_salt = "other";
  EXPECT_EQ(Cached(Run(*second, std::move(salted))), 0);
  GenerationRequest echo = TestRequest(70, 1, 10);
  echo.prompt_logprobs = 1;
  EXPECT_EQ(Cached(Run(*second, std::move(echo))), 0);
  EXPECT_EQ(second->core->stats().prefix_transfer.hits, 0u);
}

TEST_P(PrefixTransferTest, ABurstReadsItsPrefixOnceAndOthersRunOn) {
  auto first = Restart();
  Run(*first, TestRequest(70, 1, 10));
  auto test = Restart();
  store_->readable = 0;  // the disk takes its time
  const auto running = test->Submit(TestRequest(9, 7, 30));
  std::vector<std::shared_ptr<RecordingSink>> burst;
  for (int i = 0; i < 4; ++i) burst.push_back(test->Submit(TestRequest(70, 1, 10)));
  test->RunUntilIdle();
  EXPECT_TRUE(running->ended());
  for (const auto& sink : burst) EXPECT_EQ(sink->offers, 0);
  const size_t asked = store_->asked();
  store_->readable = 1 << 20;
  RunAll(*test);
  for (const auto& sink : burst) {
    EXPECT_EQ(Difference(sink->merged, Cold(TestRequest(70, 1, 10))), "");
    EXPECT_EQ(Cached(sink->merged), 64);
  }
  EXPECT_EQ(test->core->stats().prefix_transfer.hits, 1u);
  EXPECT_LE(asked, 8u);  // two groups of four spans
}

TEST_P(PrefixTransferTest, ARowMayLeaveWhileItIsRead) {
  auto first = Restart();
  Run(*first, TestRequest(70, 1, 10));
  auto test = Restart();
  store_->readable = 2;
  const auto sink = test->Submit(TestRequest(70, 1, 10));
  RunAll(*test);
  EXPECT_GT(store_->asked(), 0u);
  test->core->Cancel(test->last_id());
  test->RunUntilIdle();
  EXPECT_TRUE(sink->ended());
  EXPECT_EQ(store_->asked(), 0u);
  EXPECT_EQ(test->core->kv().used_bytes(), 0);
  EXPECT_TRUE(test->core->kv().CheckIntegrity().ok());
  store_->readable = 1 << 20;
  const GenerationEvent answer = Run(*test, TestRequest(70, 1, 10));
  EXPECT_EQ(Cached(answer), 64);
  EXPECT_EQ(Difference(answer, Cold(TestRequest(70, 1, 10))), "");
}

TEST_P(PrefixTransferTest, EveryPartMayBeMissingOrNoGood) {
  auto first = Restart();
  Run(*first, TestRequest(70, 1, 10));
  const MemoryStore::Entries all = store_->entries;
  const GenerationEvent cold = Cold(TestRequest(70, 1, 10));
  for (const auto& [key, bytes] : all) {
    for (const bool gone : {true, false}) {
      store_->entries = all;
      if (gone) {
        store_->entries.erase(key);
      } else {
        store_->entries[key].pop_back();
      }
      auto test = Restart();
      const GenerationEvent answer = Run(*test, TestRequest(70, 1, 10));
      EXPECT_EQ(Difference(answer, cold), "");
      EXPECT_LE(Cached(answer), 64);
      EXPECT_TRUE(test->core->kv().CheckIntegrity().ok());
      // Computed again it is kept again.
      for (const auto& [other, unused] : all) {
        EXPECT_TRUE(other.second != 0 || store_->entries.contains(other));
      }
    }
  }
}

TEST_P(PrefixTransferTest, WithoutRoomItWaitsInTheCache) {
  auto test = Restart();
  store_->has_room = false;
  Run(*test, TestRequest(70, 1, 10));
  EXPECT_TRUE(store_->entries.empty());
  EXPECT_LT(test->core->prefixes_handed_over(), test->core->last_prefix_number());
  store_->has_room = true;
  test->RunUntilIdle();
  EXPECT_FALSE(store_->entries.empty());
  EXPECT_EQ(test->core->prefixes_handed_over(), test->core->last_prefix_number());
}

TEST_P(PrefixTransferTest, WhatAFailedRowComputedIsTakenBack) {
  FakeOptions fake = Fake();
  fake.row_status = [](int64_t n, const StepRow&) {
    return n == 2 ? Internal("not a number") : OkStatus();
  };
  TestCore test(std::move(fake), Options());
  const auto sink = test.Submit(TestRequest(70, 1, 10));
  test.RunUntilIdle();
  EXPECT_EQ(sink->merged.end->reason, FinishReason::kError);
  EXPECT_TRUE(store_->entries.empty());
  EXPECT_FALSE(store_->removed.empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, PrefixTransferTest,
                         ::testing::Values(CacheKind::kPaged, CacheKind::kWindow,
                                           CacheKind::kRecurrent, CacheKind::kLatent));

TEST(PrefixTransfer, AStoreForOtherCachesIsRefused) {
  EngineOptions options = TestCore::DefaultOptions();
  options.prefix_store = std::make_shared<MemoryStore>();
  class Other : public FakeExecutor {
   public:
    Other() : FakeExecutor(FakeOptions()) { other_.cache_identity = "another"; }
    const ExecutorInfo& info() const override { return other_; }

   private:
    ExecutorInfo other_ = FakeExecutor::info();
  };
  const auto made =
      EngineCore::Create(std::make_unique<Other>(), testing::TestTokenizer(), std::move(options));
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
