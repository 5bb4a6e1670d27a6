#include "platform/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>

namespace lockstep {
namespace {

TEST(ThreadPool, EveryItemRunsOnceInEveryLoop) {
  for (int32_t threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int32_t> runs(97);
    for (int32_t step = 0; step < 50; ++step) {
      pool.BeginStep();
      for (int32_t loop = 0; loop < 20; ++loop) {
        pool.ParallelFor(static_cast<int32_t>(runs.size()),
                         [&](int32_t item, int32_t) { ++runs[item]; });
      }
      pool.EndStep();
    }
    for (int32_t count : runs) EXPECT_EQ(count, 1000);
  }
}

TEST(ThreadPool, ALoopSeesWhatTheLastOneWrote) {
  ThreadPool pool(3);
  std::vector<int64_t> a(64, 1), b(64);
  pool.BeginStep();
  for (int32_t round = 0; round < 2000; ++round) {
    pool.ParallelFor(64, [&](int32_t item, int32_t) { b[item] = a[(item + 1) % 64] + 1; });
    pool.ParallelFor(64, [&](int32_t item, int32_t) { a[item] = b[(item + 7) % 64]; });
  }
  pool.EndStep();
  for (int64_t value : a) EXPECT_EQ(value, 2001);
}

TEST(ThreadPool, WorkersAreNumbered) {
  ThreadPool pool(2);
  pool.BeginStep();
  std::vector<int32_t> worker_of(1000, -1);
  pool.ParallelFor(1000, [&](int32_t item, int32_t worker) { worker_of[item] = worker; });
  pool.EndStep();
  for (int32_t worker : worker_of) EXPECT_TRUE(worker == 0 || worker == 1);
}

}  // namespace
}  // namespace lockstep
