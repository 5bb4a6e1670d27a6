// GET /health: 200 when requests are served, 503 while loading, draining, shutting down, or when
// the engine is dead. GET /version.
#pragma once

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleHealth(const ApiContext& context, const ApiCall& call);
ApiResult HandleVersion(const ApiContext& context, const ApiCall& call);

}  // namespace lockstep
