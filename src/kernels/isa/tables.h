// The tables of each instruction set; each is composed in isa/<isa>/table.cc. Calling a function of
// a table on a CPU that lacks its instructions is undefined: go through kernels.h.
#pragma once

#include "kernels/kernels.h"

namespace lockstep::kernels {

const KernelTable& ScalarTable();
#if defined(__x86_64__)
const KernelTable& Avx2Table();    // AVX2, FMA and F16C
const KernelTable& Avx512Table();  // AVX-512 F, BW, DQ, VL and VNNI
#endif

// The parts, each defined in isa/<isa>/{gemm,elementwise,attention}.cc.
namespace scalar {
GemmKernels Gemm();
ElementwiseKernels Elementwise();
AttentionKernels Attention();
}  // namespace scalar
#if defined(__x86_64__)
namespace avx2 {
GemmKernels Gemm();
ElementwiseKernels Elementwise();
AttentionKernels Attention();
}  // namespace avx2
namespace avx512 {
GemmKernels Gemm();
ElementwiseKernels Elementwise();
AttentionKernels Attention();
}  // namespace avx512
#endif

}  // namespace lockstep::kernels
