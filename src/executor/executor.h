// The seam between the engine and whatever computes a model: a CPU, a fake for tests, later a
// device. Coarse on purpose: one call computes a whole step for all rows (forward, head, sampling).
//
// Thread-safety: info() from any thread; everything else from the engine's thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/cache_spec.h"
#include "core/step.h"
#include "core/types.h"

namespace lockstep {

struct ExecutorInfo {
  std::string architecture;  // "llama"
  std::string fingerprint;   // what the bytes depend on besides the request: weights, numerics
                             // class, KV scheme; shown as system_fingerprint
  int32_t vocab_size = 0;
  int32_t max_context = 0;      // positions a sequence may have
  int32_t max_step_tokens = 0;  // most tokens of a step, over all rows
  int32_t max_step_rows = 0;    // most rows of a step
  int64_t weight_bytes = 0;     // resident, after packing
  int64_t multiply_adds = 0;    // of one token's products with weights, without the head
  int64_t head_multiply_adds = 0;
  bool integer_products = false;  // the products are of integers
  int64_t activation_bytes = 0;   // the arena of a step
  std::vector<CacheGroupSpec> cache_groups;
  // What the bytes of exported blocks depend on besides the tokens: all that makes the fingerprint,
  // the model's configuration and the layout. Empty: they cannot be told from others'.
  std::string cache_identity;
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual const ExecutorInfo& info() const = 0;

  // Makes the pools: blocks[i] blocks for cache group i. Called once, before the first step.
  virtual Status AllocateCache(const std::vector<int32_t>& blocks) = 0;

  // Computes every row of `input`: appends its span to its cache and samples where asked. `output`
  // is resized to match and its buffers are reused. A non-OK return means that no row's result may
  // be used and the rows may be computed again from the same positions; a failure of one row alone
  // stands in that row's status.
  virtual Status Step(const StepInput& input, StepOutput* output) = 0;

  // Copies the bytes of blocks of one cache group out, and in. What they mean is the backend's
  // alone; under one cache_identity they may come from another process. A backend without them has
  // no cache_identity. REQUIRES: `bytes` has block_bytes of each block, one after the other; blocks
  // that are copied in stand in no row's table.
  virtual Status ExportBlocks(int32_t, std::span<const BlockId>, std::span<std::byte>) {
    return Unimplemented("this backend does not export blocks");
  }
  virtual Status ImportBlocks(int32_t, std::span<const BlockId>, std::span<const std::byte>) {
    return Unimplemented("this backend does not import blocks");
  }
};

}  // namespace lockstep
