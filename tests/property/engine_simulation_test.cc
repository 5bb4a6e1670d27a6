// Whatever else runs, joins, leaves or fails: an answer is what the request gets alone.
#include <gtest/gtest.h>

#include "base/log.h"
#include "simulation.h"

namespace lockstep {
namespace {

TEST(EngineSimulation, AnswersDependOnTheRequestAlone) {
  SetLogLevel(LogLevel::kOff);
  SimulationCounts counts;
  for (uint64_t seed = 1; seed <= 1200; ++seed) {
    const std::string problem = Simulate(seed, &counts);
    ASSERT_EQ(problem, "") << "seed " << seed;
  }
  // The workloads reach what they are meant to reach.
  EXPECT_GT(counts.requests, 10000);
  EXPECT_GT(counts.finished, 8000);
  EXPECT_GT(counts.cancelled, 1000);
  EXPECT_GT(counts.failed, 100);
  EXPECT_GT(counts.failed_steps, 1000);
  EXPECT_GT(counts.pauses, 1000);
  EXPECT_GT(counts.cached_tokens, 20000);
  EXPECT_GT(counts.evictions, 2000);
  EXPECT_GT(counts.restored_tokens, 5000);
  EXPECT_GT(counts.failed_restores, 50);
}

}  // namespace
}  // namespace lockstep
