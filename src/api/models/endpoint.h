// GET /v1/models and GET /v1/models/{id}.
#pragma once

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleModels(const ApiContext& context, const ApiCall& call);
ApiResult HandleModel(const ApiContext& context, const ApiCall& call);

}  // namespace lockstep
