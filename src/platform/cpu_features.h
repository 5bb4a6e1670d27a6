// What instruction sets this CPU and its operating system run; asked once, immutable afterwards.
// Not a list of all features: one flag for each set that has kernels of its own.
//
// Thread-safe.
#pragma once

namespace lockstep {

struct CpuFeatures {
  bool avx2_fma_f16c = false;  // and the operating system saves the 256-bit registers
  bool avx_vnni = false;       // dots of bytes on 256-bit registers; implies AVX2
  bool avx512_vnni = false;    // F, BW, DQ, VL and VNNI, 512-bit registers saved; implies AVX2
  bool dotprod = false;        // AArch64: sdot on Advanced SIMD (optional from Armv8.2 on)
  bool i8mm = false;           // AArch64: smmla on Advanced SIMD; implies dotprod
};

const CpuFeatures& Cpu();

}  // namespace lockstep
