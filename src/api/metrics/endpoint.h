// GET /metrics: the engine's and the server's counters in Prometheus' text format 0.0.4. Where a
// number means what it means in vLLM it has vLLM's name; the rest is lockstep_*.
#pragma once

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleMetrics(const ApiContext& context, const ApiCall& call);

}  // namespace lockstep
