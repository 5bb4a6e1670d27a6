// GET /openapi.json: every route of the server with what it takes and answers, as OpenAPI 3.1. Each
// endpoint's folder has its own part, openapi.json, which a new endpoint must bring along.
#pragma once

#include <string_view>

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleOpenApi(const ApiContext& context, const ApiCall& call);

// The whole document, of a program of this version.
Json OpenApiDocument(std::string_view version);

}  // namespace lockstep
