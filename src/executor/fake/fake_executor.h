// An executor for tests: no model, but the same duties. "Computing" a position writes a hash of its
// token and of what it reads of the position before into the cache's blocks (or folds it into the
// state), so that a block depends on all that comes before it; the next token is a hash of all that
// the last position reads back through the block tables of every group, and of nothing else. Wrong
// tables, blocks of another prefix, lost or doubled positions all change the output; reading an
// entry that is not there, or writing a block that another row has, ends the test.
//
// With temperature 0 the hash alone decides; above it, the seed, stream and position join in.
// Faults come from the hooks in FakeOptions. A failing step leaves rubbish in the spans it was to
// compute.
//
// Not thread-safe, as Executor; the hooks are called on the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/executor.h"

namespace lockstep {

struct FakeOptions {
  int32_t vocab_size = 50;
  int32_t max_context = 256;
  int32_t max_step_tokens = 64;
  int32_t max_step_rows = 16;
  std::vector<CacheGroupSpec> cache_groups = {{CacheKind::kPaged, 4, 64, "fake"},
                                              {CacheKind::kPaged, 16, 128, "fake"}};

  // Called before step `n` (from 0) computes: it may fail it, throw, or block.
  std::function<Status(int64_t n, const StepInput& input)> before_step;
  // Called for each row of step `n`: the status of the row (a NaN in its logits, say).
  std::function<Status(int64_t n, const StepRow& row)> row_status;
};

class FakeExecutor : public Executor {
 public:
  explicit FakeExecutor(FakeOptions options);

  const ExecutorInfo& info() const override { return info_; }
  Status AllocateCache(const std::vector<int32_t>& blocks) override;
  Status Step(const StepInput& input, StepOutput* output) override;
  Status ExportBlocks(int32_t group, std::span<const BlockId> blocks,
                      std::span<std::byte> bytes) override;
  Status ImportBlocks(int32_t group, std::span<const BlockId> blocks,
                      std::span<const std::byte> bytes) override;

 private:
  void CheckContract(const StepInput& input) const;
  void Write(const StepRow& row, bool rubbish);
  // What is stored in a block; as much as its exported bytes have room for.
  std::span<std::byte> BlockBytes(int32_t group, BlockId block);
  // What is stored for position p; kRecurrent: the state before the row's span.
  uint64_t& Stored(size_t group, const StepRow& row, int32_t p);
  uint64_t Stored(size_t group, const StepRow& row, int32_t p) const;
  uint64_t StateAfter(size_t group, const StepRow& row, int32_t end) const;
  uint64_t HashOf(const StepRow& row, int32_t end) const;
  TokenId Sample(const StepRow& row) const;
  void FillLogprobs(const StepRow& row, RowOutput* output) const;

  const FakeOptions options_;
  ExecutorInfo info_;
  std::vector<std::vector<uint64_t>>
      storage_;  // [group][block * block_tokens + offset], or [block]
  int64_t steps_ = 0;
};

}  // namespace lockstep
