// POST /admin/drain: from now on new requests are refused, those that are here run to their ends.
// GET /admin/drain: how far that is. Asking twice changes nothing; there is no way back but a
// restart.
#pragma once

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleDrain(const ApiContext& context, const ApiCall& call);
ApiResult HandleDrainState(const ApiContext& context, const ApiCall& call);

}  // namespace lockstep
