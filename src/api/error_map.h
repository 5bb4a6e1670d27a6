// Status to what an HTTP client gets: one table. The body is OpenAI's:
// {"error":{"message","type","param","code"}}. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "api/json.h"
#include "base/status.h"

namespace lockstep {

struct HttpError {
  int status = 500;
  int retry_after_seconds = 0;  // > 0: sent as Retry-After
  Json body;
};

// REQUIRES: !status.ok().
HttpError ToHttpError(const Status& status);

// For faults of HTTP itself (404, 405, 413, ...), which have no Status. An empty code is null.
Json ErrorBody(std::string_view message, std::string_view type, std::string_view code);

}  // namespace lockstep
