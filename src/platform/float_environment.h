// The floating-point environment that every computing thread runs in: round to nearest even,
// denormals kept, no traps. Part of the determinism rules: a thread that flushed denormals would
// give other bits.
#pragma once

namespace lockstep {

// Sets it for the calling thread.
void SetFloatEnvironment();

}  // namespace lockstep
