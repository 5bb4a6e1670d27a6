// The small types that every layer shares.
#pragma once

#include <cstdint>

namespace lockstep {

using TokenId = int32_t;

// Index of a block in the executor's pool of one cache group. Opaque outside the cache and the
// executor.
using BlockId = int32_t;

}  // namespace lockstep
