#include "platform/thread_pool.h"

#include "base/check.h"
#include "platform/float_environment.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep {
namespace {

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr uint32_t kSpinsBeforeSleep = 8192;

// Waits a turn: mostly by pausing, now and then by giving the core away, so that more threads than
// cores still make progress.
void Spin(uint32_t* turns) {
  if (++*turns % 4096 == 0) {
    std::this_thread::yield();
  } else {
    Pause();
  }
}

}  // namespace

ThreadPool::ThreadPool(int32_t threads) {
  LOCKSTEP_CHECK(threads >= 1);
  workers_.reserve(threads - 1);
  for (int32_t worker = 1; worker < threads; ++worker) {
    workers_.emplace_back([this, worker] { WorkerMain(worker); });
  }
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  active_.fetch_add(2);
  active_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::BeginStep() {
  active_.fetch_add(1);
  active_.notify_all();
}

void ThreadPool::EndStep() { active_.fetch_add(1); }

void ThreadPool::Loop(int32_t items, Function function, void* context) {
  if (items <= 0) return;
  if (workers_.empty() || items == 1) {
    for (int32_t item = 0; item < items; ++item) function(context, item, 0);
    return;
  }
  const uint32_t epoch = static_cast<uint32_t>(next_.load(std::memory_order_relaxed) >> 32) + 1;
  done_.store(0, std::memory_order_relaxed);
  // Closes the last loop before its fields change: a late worker's claim then fails.
  next_.store(uint64_t{epoch} << 32 | UINT32_MAX, std::memory_order_seq_cst);
  function_.store(function, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  items_.store(items, std::memory_order_relaxed);
  next_.store(uint64_t{epoch + 1} << 32, std::memory_order_release);
  Work(epoch + 1, 0);
  uint32_t turns = 0;
  while (done_.load(std::memory_order_acquire) != items) Spin(&turns);
}

void ThreadPool::Work(uint32_t epoch, int32_t worker) {
  uint64_t next = next_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(next >> 32) == epoch) {
    const Function function = function_.load(std::memory_order_relaxed);
    void* context = context_.load(std::memory_order_relaxed);
    const uint32_t items = static_cast<uint32_t>(items_.load(std::memory_order_relaxed));
    const uint32_t item = static_cast<uint32_t>(next);
    if (item >= items) return;
    if (!next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      continue;
    }
    function(context, static_cast<int32_t>(item), worker);
    done_.fetch_add(1, std::memory_order_release);
    next = next_.load(std::memory_order_acquire);
  }
}

void ThreadPool::WorkerMain(int32_t worker) {
  SetFloatEnvironment();
  uint32_t seen = 0;
  while (true) {
    const uint32_t active = active_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (active % 2 == 0) {
      // Steps follow each other closely under load, and waking a sleeper costs more than a short
      // wait.
      uint32_t turns = 0;
      while (turns < kSpinsBeforeSleep && active_.load(std::memory_order_relaxed) == active) {
        Spin(&turns);
      }
      active_.wait(active);
      continue;
    }
    uint32_t turns = 0;
    while (active_.load(std::memory_order_relaxed) == active) {
      const uint32_t epoch = static_cast<uint32_t>(next_.load(std::memory_order_acquire) >> 32);
      if (epoch == seen) {
        Spin(&turns);
        continue;
      }
      Work(epoch, worker);
      seen = epoch;
    }
  }
}

}  // namespace lockstep
