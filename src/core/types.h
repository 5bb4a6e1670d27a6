// The small types that every layer shares.
#pragma once

#include <cstdint>

namespace lockstep {

using TokenId = int32_t;

// Index of a block in the executor's pool of one cache group. Opaque outside the cache and the
// executor.
using BlockId = int32_t;

// An entry of a block table that nobody may read: its positions slid out of a window, or a state
// that does not exist yet.
inline constexpr BlockId kNoBlock = -1;

}  // namespace lockstep
