// Seeds for requests that bring none: unpredictable, and never the same twice from one source.
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <random>

#include "base/philox.h"

namespace lockstep {

class SeedSource {
 public:
  SeedSource() {
    std::random_device device;
    key_ = {device(), device()};
  }

  uint64_t Next() {
    const uint64_t n = next_.fetch_add(1, std::memory_order_relaxed);
    const auto words =
        Philox4x32({static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), 0, 0}, key_);
    return (static_cast<uint64_t>(words[1]) << 32) | words[0];
  }

 private:
  std::array<uint32_t, 2> key_;
  std::atomic<uint64_t> next_ = 0;
};

}  // namespace lockstep
