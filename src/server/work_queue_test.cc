#include "server/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace lockstep {
namespace {

constexpr size_t kLarge = WorkQueue::kLargeBytes;

TEST(WorkQueue, LargeWorkLeavesAThreadToTheSmall) {
  std::promise<void> open;
  const auto opened = open.get_future().share();
  WorkQueue queue(2);
  std::atomic<int> large_running{0};
  std::atomic<int> most{0};
  for (int i = 0; i < 8; ++i) {
    queue.Post(kLarge, [&, opened] {
      most = std::max(most.load(), ++large_running);
      opened.wait();
      --large_running;
    });
  }
  // They all wait behind eight that do not end, and pass them.
  for (int i = 0; i < 100; ++i) {
    std::promise<void> done;
    queue.Post(kLarge - 1, [&] { done.set_value(); });
    done.get_future().wait();
  }
  open.set_value();
  queue.Join();
  EXPECT_EQ(most, 1);
}

TEST(WorkQueue, EachKindIsServedInTurnAndNothingIsLost) {
  std::promise<void> open;
  const auto opened = open.get_future().share();
  std::vector<int> order;  // by the one thread
  WorkQueue queue(1);
  queue.Post(0, [opened] { opened.wait(); });
  for (int i = 0; i < 20; ++i) {
    queue.Post(i % 3 == 0 ? kLarge : 0, [&order, i] { order.push_back(i); });
  }
  open.set_value();
  queue.Join();
  ASSERT_EQ(order.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace lockstep
