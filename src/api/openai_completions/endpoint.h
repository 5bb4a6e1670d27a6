// POST /v1/completions.
#pragma once

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleCompletions(const ApiContext& context, const ApiCall& call);

}  // namespace lockstep
