#include "engine/stats.h"

#include <algorithm>

namespace lockstep {
namespace {

Histogram WithBounds(std::vector<double> bounds) {
  Histogram histogram;
  histogram.counts.assign(bounds.size() + 1, 0);
  histogram.bounds = std::move(bounds);
  return histogram;
}

}  // namespace

void Histogram::Add(double value) {
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  ++counts[static_cast<size_t>(bucket)];
  sum += value;
  ++count;
}

EngineStats EmptyEngineStats() {
  EngineStats stats;
  // vLLM's bounds, so that its dashboards can be pointed here.
  stats.time_to_first_token =
      WithBounds({0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
                  1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0});
  stats.inter_token = WithBounds({0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
                                  1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0});
  const std::vector<double> whole = {0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,
                                     5.0,  10.0, 15.0, 20.0, 30.0,  40.0,  50.0,
                                     60.0, 120., 240., 480., 960.0, 1920., 7680.};
  stats.queue_wait = WithBounds(whole);
  stats.end_to_end = WithBounds(whole);
  return stats;
}

}  // namespace lockstep
