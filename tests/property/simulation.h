// A random workload over an EngineCore and the fake executor, from one seed: arrivals, cancels,
// deadlines, full, closing and throwing sinks, chunk cuts, failing steps and rows, odd budgets.
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
};

// What went wrong, or "". Adds to `counts` what happened.
std::string Simulate(uint64_t seed, SimulationCounts* counts);

}  // namespace lockstep
