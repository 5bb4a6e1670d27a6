// POST /tokenize and POST /detokenize, in vLLM's shape.
#pragma once

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleTokenize(const ApiContext& context, const ApiCall& call);
ApiResult HandleDetokenize(const ApiContext& context, const ApiCall& call);

}  // namespace lockstep
