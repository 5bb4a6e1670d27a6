// SystemError: what the operating system said of a file, as a Status whose message begins with the
// path. A pure function.
#pragma once

#include <string>

#include "base/status.h"

namespace lockstep {

// `error` is an errno: kNotFound, kFailedPrecondition where it is not allowed, kResourceExhausted
// without memory, else kIoError.
Status SystemError(const std::string& path, int error);

}  // namespace lockstep
