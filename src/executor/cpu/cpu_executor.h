// CpuExecutor: computes steps on this machine's CPU: the model's forward pass over ragged rows, the
// head for the rows that want logits, sampling. Owns threads, weights, caches and buffers.
//
// Thread-safety: as Executor.
#pragma once

#include <memory>
#include <string>

#include "executor/executor.h"
#include "kernels/kernels.h"
#include "model/model.h"

namespace lockstep {

struct CpuExecutorOptions {
  int32_t threads = 1;
  ComputeClass compute = ComputeClass::kAuto;
  std::string packed_cache;  // folder that keeps packed weights; empty: none
  kernels::KvScheme kv;      // bf16
  bool sizes_only = false;   // LoadOptions::sizes_only: info() is all that may be asked
  int32_t max_context = 0;   // 0: the model's own
  int32_t max_step_tokens = 512;
  int32_t max_step_rows = 64;
  const kernels::KernelTable* kernels = nullptr;  // null: the table in use (tests give others)
};

// Loads `checkpoint`. Errors name the file and the tensor, key or option.
Result<std::unique_ptr<Executor>> MakeCpuExecutor(std::shared_ptr<const Checkpoint> checkpoint,
                                                  const CpuExecutorOptions& options);

}  // namespace lockstep
