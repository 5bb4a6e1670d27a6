// How much memory and how many cores this process may use: the machine's, cut by the control group
// and the affinity mask it runs under. Read anew at each call.
#pragma once

#include <cstdint>

namespace lockstep {

// Bytes that can still be had without swapping: the machine's available memory, or what the control
// group (v1 or v2) leaves, whichever is less.
int64_t AvailableMemory();

// Bytes that this process has in memory and that no file could give back.
int64_t AnonymousMemory();

// Cores that the affinity mask and the control group's CPU quota leave, at least 1.
int32_t AvailableCores();

}  // namespace lockstep
