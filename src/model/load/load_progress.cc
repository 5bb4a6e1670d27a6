#include "model/load/load_progress.h"

#include <algorithm>

#include "base/log.h"

namespace lockstep {

void LoadProgress::Add(uint64_t bytes) {
  done_bytes_ += bytes;
  const Clock::time_point now = Clock::now();
  if (now - last_line_ < std::chrono::seconds(1) || done_bytes_ >= total_bytes_) return;
  last_line_ = now;
  LogInfo("loading {}: {} of {} MiB", what_, done_bytes_ >> 20, total_bytes_ >> 20);
}

}  // namespace lockstep
