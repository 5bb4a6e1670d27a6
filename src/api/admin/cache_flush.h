// POST /admin/cache/flush: answers when the prefix cache is durable on disk.
#pragma once

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleCacheFlush(const ApiContext& context, const ApiCall& call);

}  // namespace lockstep
