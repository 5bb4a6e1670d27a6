// Compute: what every layer computes with, passed down rather than global: the threads, the kernels
// of this CPU, and scratch memory of each worker. Owned by the executor. One step at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/kernels.h"
#include "platform/buffer.h"
#include "platform/thread_pool.h"

namespace lockstep {

// Items that work is cut into: enough to balance threads, or items, that run unequally.
inline constexpr int32_t kItemsPerThread = 8;

class Compute {
 public:
  Compute(ThreadPool* pool, const kernels::KernelTable& kernels)
      : pool_(*pool), kernels_(kernels), scratch_(pool->threads()) {}

  ThreadPool& pool() { return pool_; }
  int32_t threads() const { return pool_.threads(); }
  const kernels::KernelTable& kernels() const { return kernels_; }

  // Makes every worker's scratch at least this large. Not during a step.
  Status ReserveScratch(size_t bytes) {
    for (Buffer& scratch : scratch_) {
      if (scratch.size() >= bytes) continue;
      LOCKSTEP_ASSIGN_OR_RETURN(scratch, Buffer::Allocate(bytes, "scratch"));
    }
    return OkStatus();
  }
  void* scratch(int32_t worker) { return scratch_[worker].data(); }

 private:
  ThreadPool& pool_;
  const kernels::KernelTable& kernels_;
  std::vector<Buffer> scratch_;
};

}  // namespace lockstep
