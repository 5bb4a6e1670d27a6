#include "platform/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace lockstep {
namespace {

#if defined(__x86_64__)

constexpr unsigned kYmmState = 0x06;  // XCR0: SSE and AVX registers
constexpr unsigned kZmmState = 0xe6;  // and mask registers, upper halves, zmm16..31

bool Bit(unsigned word, int bit) { return ((word >> bit) & 1u) != 0; }

// XCR0, by hand because the intrinsic needs a target option. REQUIRES: OSXSAVE.
unsigned EnabledStates() {
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

CpuFeatures Detect() {
  CpuFeatures features;
  unsigned a = 0, b1 = 0, c1 = 0, d1 = 0;
  if (!__get_cpuid(1, &a, &b1, &c1, &d1)) return features;
  const bool osxsave = Bit(c1, 27);
  if (!osxsave) return features;
  const unsigned states = EnabledStates();
  unsigned b7 = 0, c7 = 0, d7 = 0;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return features;

  const bool fma = Bit(c1, 12), avx = Bit(c1, 28), f16c = Bit(c1, 29), avx2 = Bit(b7, 5);
  features.avx2_fma_f16c = (states & kYmmState) == kYmmState && avx && avx2 && fma && f16c;

  unsigned a71 = 0, b71 = 0, c71 = 0, d71 = 0;
  if (a >= 1) __get_cpuid_count(7, 1, &a71, &b71, &c71, &d71);  // a: the last subleaf
  features.avx_vnni = features.avx2_fma_f16c && Bit(a71, 4);

  const bool f = Bit(b7, 16), dq = Bit(b7, 17), bw = Bit(b7, 30), vl = Bit(b7, 31);
  const bool vnni = Bit(c7, 11);
  features.avx512_vnni =
      features.avx2_fma_f16c && (states & kZmmState) == kZmmState && f && dq && bw && vl && vnni;
  return features;
}

#elif defined(__aarch64__)

CpuFeatures Detect() {
  CpuFeatures features;
  features.dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  features.i8mm = features.dotprod && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  return features;
}

#else

CpuFeatures Detect() { return {}; }

#endif

}  // namespace

const CpuFeatures& Cpu() {
  static const CpuFeatures features = Detect();
  return features;
}

}  // namespace lockstep
