// POST /v1/responses; GET and DELETE /v1/responses/{id}, GET /v1/responses/{id}/input_items: what
// was stored for whoever made it.
#pragma once

#include <string>

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleResponses(const ApiContext& context, const ApiCall& call);
ApiResult HandleResponse(const ApiContext& context, const ApiCall& call);
ApiResult HandleResponseDelete(const ApiContext& context, const ApiCall& call);
ApiResult HandleResponseItems(const ApiContext& context, const ApiCall& call);

// What ends a stream that failed: a comment, since the writer's response.failed has said it.
std::string ResponsesErrorEvent(const Status& status);

}  // namespace lockstep
