// The table of all endpoints. A new endpoint is a folder here and a line in routes.cc.
#pragma once

#include <span>

#include "api/endpoint.h"

namespace lockstep {

std::span<const Route> Routes();

}  // namespace lockstep
