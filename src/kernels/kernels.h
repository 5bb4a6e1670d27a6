// The contract between models and machine code: tables of plain function pointers, one table an
// instruction set, picked once for the process. Callers see shapes and layouts (gemm.h,
// elementwise.h, attention.h, recurrent.h) and never an instruction set; the bits of every result
// are the same on all of them (docs/determinism.md).
//
// Thread-safety: all functions are pure over their arguments; tables are immutable.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/gemm.h"
#include "kernels/recurrent.h"

namespace lockstep::kernels {

struct KernelTable {
  const char* isa;  // "scalar", "avx2", "neon", ...
  GemmKernels gemm;
  ElementwiseKernels elementwise;
  AttentionKernels attention;
  RecurrentKernels recurrent;
};

// The table in use: the best that this CPU runs, or the one that LOCKSTEP_ISA names. The first call
// decides; SelectTable() reports a bad name first.
const KernelTable& Table();

// Decides the table before its first use. An unknown name, or one this CPU cannot run, is an error
// that lists the possible ones. Empty: the best.
Status SelectTable(std::string_view isa);

// Every table that this CPU runs, best first; for tests and benchmarks.
std::vector<const KernelTable*> SupportedTables();

}  // namespace lockstep::kernels
