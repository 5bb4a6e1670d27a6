// Threads for what endpoints do with a request before the engine gets it: parse, template,
// tokenise. First come, first served, but large requests never take the last thread: a short
// request waits for short ones alone, however many megabytes are being tokenised beside it.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep {

class WorkQueue {
 public:
  // From this size on a request is large.
  static constexpr size_t kLargeBytes = size_t{64} << 10;

  // With one thread (REQUIRES: at least one) large requests do hold up the others.
  explicit WorkQueue(int threads);
  ~WorkQueue();  // joins
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // `work` must not throw. Throws std::bad_alloc, and has then done nothing. REQUIRES: before Join.
  void Post(size_t request_bytes, std::function<void()> work);

  // Does what was posted and ends the threads. Idempotent; one caller.
  void Join();

 private:
  struct Job {
    bool large = false;
    std::function<void()> work;
  };

  void Run();
  // The oldest job that may start now; end() when none may.
  std::deque<Job>::iterator Next();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  int free_for_large_;
  bool joining_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep
