// POST /v1/chat/completions.
#pragma once

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleChatCompletions(const ApiContext& context, const ApiCall& call);

}  // namespace lockstep
