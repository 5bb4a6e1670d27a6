// The program's version, as --version, /version and the fingerprint show it.
#pragma once

namespace lockstep {

inline constexpr const char* kVersion = LOCKSTEP_VERSION;

}  // namespace lockstep
