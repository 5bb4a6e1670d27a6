#include "platform/float_environment.h"

#include <cfenv>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep {

void SetFloatEnvironment() {
  std::fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
  _mm_setcsr(0x1F80);  // the reset value: nearest, all exceptions masked, no flush to zero
#endif
}

}  // namespace lockstep
