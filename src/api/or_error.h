// What a handler answers with that either has a reply or job or a status. Stateless.
#pragma once

#include <utility>

#include "api/endpoint.h"
#include "base/status.h"

namespace lockstep {

// T: ApiReply or GenerationJob. `error` is the shape of errors of the handler's API.
template <typename T>
ApiResult OrError(Result<T> result, ApiReply (*error)(const Status&) = ErrorReply) {
  if (!result.ok()) return error(result.status());
  return std::move(result).value();
}

}  // namespace lockstep
