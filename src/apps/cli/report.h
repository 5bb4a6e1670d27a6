// How a command reports a failure: one line on standard error, and the exit code.
#pragma once

#include <cstdio>

#include "base/status.h"

namespace lockstep {

inline int ReportFailure(const Status& status) {
  std::fprintf(stderr, "lockstep: %s\n", status.ToString().c_str());
  return status.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

}  // namespace lockstep
