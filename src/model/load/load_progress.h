// LoadProgress: says in the log how far loading has come, at most once a second, and nothing when
// it is over within the first. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep {

class LoadProgress {
 public:
  LoadProgress(std::string what, uint64_t total_bytes)
      : what_(std::move(what)), total_bytes_(total_bytes) {}

  // That many more bytes of the checkpoint have been dealt with.
  void Add(uint64_t bytes);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  uint64_t total_bytes_;
  uint64_t done_bytes_ = 0;
  Clock::time_point last_line_ = Clock::now();
};

}  // namespace lockstep
