// A random workload over an EngineCore and the fake executor, from one seed: arrivals, cancels,
// deadlines, full, closing and throwing sinks, chunk cuts, failing steps and rows, odd budgets,
// caches of every kind, prompts that begin alike, bursts of them, and what an engine before has
// left of them in a prefix store that is slow, full and losing things.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct SimulationCounts {
  int requests = 0;
  int finished = 0;
  int cancelled = 0;
  int failed = 0;
  int failed_steps = 0;
  int pauses = 0;
  int64_t cached_tokens = 0;
  int64_t evictions = 0;
  int64_t restored_tokens = 0;
  int64_t failed_restores = 0;
};

// What went wrong, or "". Adds to `counts` what happened.
std::string Simulate(uint64_t seed, SimulationCounts* counts);

}  // namespace lockstep
