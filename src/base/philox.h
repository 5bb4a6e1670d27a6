// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3" (SC 2011). A draw is a pure function of (seed, stream, counter): no state, so that the
// number a sequence draws at a position never depends on what else ran. Thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// The four 32-bit words for `counter` under the two-word key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A uniform double in [0, 1) with 53 bits, for draw number `index` of stream `stream` under `seed`.
double PhiloxUniform(uint64_t seed, uint64_t stream, uint64_t index);

}  // namespace lockstep
