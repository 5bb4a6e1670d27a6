// The status of what a request fails with that there is no memory for.
#pragma once

#include "base/status.h"

namespace lockstep {

// Allocates.
inline Status OutOfMemory() {
  return Unavailable("there is not enough memory for this request now");
}

}  // namespace lockstep
