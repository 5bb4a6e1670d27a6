#include "server/work_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace lockstep {

WorkQueue::WorkQueue(int threads) : free_for_large_(std::max(1, threads - 1)) {
  LOCKSTEP_CHECK(threads >= 1);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkQueue::~WorkQueue() { Join(); }

void WorkQueue::Post(size_t request_bytes, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    LOCKSTEP_CHECK(!joining_);
    jobs_.push_back({request_bytes >= kLargeBytes, std::move(work)});
  }
  changed_.notify_one();
}

void WorkQueue::Join() {
  {
    const std::lock_guard lock(mutex_);
    joining_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::deque<WorkQueue::Job>::iterator WorkQueue::Next() {
  return std::find_if(jobs_.begin(), jobs_.end(),
                      [this](const Job& job) { return !job.large || free_for_large_ > 0; });
}

void WorkQueue::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    auto next = jobs_.end();
    changed_.wait(lock, [&] {
      next = Next();
      return next != jobs_.end() || (joining_ && jobs_.empty());
    });
    if (next == jobs_.end()) return;
    const Job job = std::move(*next);
    jobs_.erase(next);
    if (job.large) --free_for_large_;
    lock.unlock();
    job.work();
    lock.lock();
    if (job.large) ++free_for_large_;
    // A large job may start now, or the last one is over.
    if (job.large || joining_) changed_.notify_all();
  }
}

}  // namespace lockstep
