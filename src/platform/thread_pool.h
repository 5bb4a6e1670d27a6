// The compute threads. The calling thread is worker 0; the others live as long as the pool. Between
// BeginStep and EndStep they spin for work; after a step they spin for a moment more, then sleep.
// Not a task queue: one parallel loop at a time, from one thread.
//
// Items are claimed one by one, so a worker that the system holds up delays nobody but its own
// item, and cores of unequal speed balance. Which worker computes an item must not matter to its
// result: every item owns its outputs. A loop allocates nothing.
//
// Thread-safety: all methods from the owning thread (worker 0) alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace lockstep {

class ThreadPool {
 public:
  explicit ThreadPool(int32_t threads);  // >= 1, worker 0 included
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t threads() const { return static_cast<int32_t>(workers_.size()) + 1; }

  void BeginStep();
  void EndStep();

  // Calls body(item, worker) for every item in [0, items) and returns when all are done; what they
  // wrote is then visible to the caller and to later loops. `body` is borrowed and must not throw.
  // REQUIRES: between BeginStep and EndStep, and not from within a body.
  template <typename Body>
  void ParallelFor(int32_t items, Body&& body) {
    Loop(
        items,
        [](void* context, int32_t item, int32_t worker) {
          (*static_cast<std::remove_reference_t<Body>*>(context))(item, worker);
        },
        &body);
  }

 private:
  using Function = void (*)(void* context, int32_t item, int32_t worker);

  void Loop(int32_t items, Function function, void* context);
  // Claims items of loop `epoch` until there are none or another loop has begun.
  void Work(uint32_t epoch, int32_t worker);
  void WorkerMain(int32_t worker);

  // The loop that runs. Written by worker 0 before next_ announces its epoch; another worker may
  // read a later loop's values, but its claim in next_ then fails.
  std::atomic<Function> function_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int32_t> items_{0};
  alignas(64) std::atomic<uint64_t> next_{0};  // epoch << 32 | next item
  alignas(64) std::atomic<int32_t> done_{0};
  alignas(64) std::atomic<uint32_t> active_{0};  // odd: within a step
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace lockstep
