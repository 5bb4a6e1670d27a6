// The tables of each instruction set; each is composed in isa/<isa>/table.cc. Calling a function of
// a table on a CPU that lacks its instructions is undefined: go through kernels.h.
#pragma once

#include "kernels/kernels.h"

namespace lockstep::kernels {

const KernelTable& ScalarTable();
#if defined(__x86_64__)
const KernelTable& Avx2Table();     // AVX2, FMA and F16C
const KernelTable& AvxVnniTable();  // and AVX-VNNI
const KernelTable& Avx512Table();   // AVX-512 F, BW, DQ, VL and VNNI
#elif defined(__aarch64__)
const KernelTable& NeonTable();      // Advanced SIMD with dotprod
const KernelTable& NeonI8mmTable();  // and i8mm
#endif

// The parts, each defined in isa/<isa>/{gemm,elementwise,attention,recurrent}.cc.
namespace scalar {
GemmKernels Gemm();
ElementwiseKernels Elementwise();
AttentionKernels Attention();
RecurrentKernels Recurrent();
}  // namespace scalar
#if defined(__x86_64__)
namespace avx2 {
GemmKernels Gemm();
ElementwiseKernels Elementwise();
AttentionKernels Attention();
RecurrentKernels Recurrent();
}  // namespace avx2
namespace avxvnni {
GemmKernels Gemm();
}  // namespace avxvnni
namespace avx512 {
GemmKernels Gemm();
ElementwiseKernels Elementwise();
AttentionKernels Attention();
RecurrentKernels Recurrent();
}  // namespace avx512
#elif defined(__aarch64__)
namespace neon {
GemmKernels Gemm();
ElementwiseKernels Elementwise();
AttentionKernels Attention();
RecurrentKernels Recurrent();
}  // namespace neon
namespace neon_i8mm {
GemmKernels Gemm();
}  // namespace neon_i8mm
#endif

}  // namespace lockstep::kernels
