// libFuzzer's entry for one target: LOCKSTEP_FUZZ_TARGET is set by the build.
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::fuzz::LOCKSTEP_FUZZ_TARGET(data, size);
  return 0;
}
