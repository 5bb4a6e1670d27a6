// What serving a model takes of memory, and what fits: the numbers that `lockstep fit` prints and
// that `serve` keeps to. Bytes.
#pragma once

#include <cstdint>

#include "apps/serving/model_options.h"
#include "base/status.h"
#include "executor/executor.h"

namespace lockstep {

struct MemoryPlan {
  int64_t weights = 0;      // packed
  int64_t activations = 0;  // the buffers of a step
  int64_t free = 0;         // for the KV cache at most: what is free now, less what is not yet used
  int64_t kv = 0;           // the KV cache: what --kv-gib says, else what all rows can use, at most
                            // half of `free`
  int64_t kv_token = 0;     // of it: a token more of a long sequence
  int64_t kv_row = 0;       // of it: a sequence as long as the context
  int32_t longest = 0;      // tokens that one sequence may have
  int32_t rows = 0;         // sequences as long as that which fit at once
};

// For an executor that has loaded its weights, or with options.sizes_only is still to do so. Reads
// how much memory is free now. Errors: kResourceExhausted naming what does not fit, those of a
// cache group that makes no sense.
Result<MemoryPlan> PlanMemory(const ModelOptions& options, const ExecutorInfo& info);

}  // namespace lockstep
