// Times an executor's steps without an engine around it: what reading a prompt and decoding cost.
// Not thread-safe; the executor is used by nobody else meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/kv_manager.h"
#include "executor/executor.h"

namespace lockstep {

struct BenchResult {
  std::string work;  // "prompt" or "decode"
  int32_t rows = 1;
  int32_t context = 0;      // tokens in the cache of each row before the timed ones
  int32_t tokens = 0;       // timed tokens over all rows
  double tokens_per_s = 0;  // median over the repeats
  double fastest = 0;
  double slowest = 0;
  // What the timed tokens need at least: weights once a step, each row's cache once a token.
  double bytes = 0;
  double multiply_adds = 0;  // of products with weights
};

class StepBench {
 public:
  // `kv_bytes` of cache are allocated.
  static Result<StepBench> Create(Executor* executor, int64_t kv_bytes);

  // Computes a prompt of `tokens` in steps of info().max_step_tokens, `repeat` times.
  Result<BenchResult> Prompt(int32_t tokens, int32_t repeat);
  // Decodes `tokens` tokens greedily on each of `rows` rows that hold `context` tokens.
  Result<BenchResult> Decode(int32_t rows, int32_t context, int32_t tokens, int32_t repeat);

 private:
  struct Row {
    std::vector<TokenId> sequence;
    CacheSlot slot = 0;
    int32_t computed = 0;
  };

  StepBench(Executor* executor, std::unique_ptr<KvManager> cache)
      : executor_(*executor), cache_(std::move(cache)) {}

  // Other rows, with room for `tokens` tokens each and a pseudo-random first part of `prompt`
  // tokens.
  Status MakeRows(int32_t rows, int32_t prompt, int32_t tokens);
  // Computes rows_' known tokens up to `end` each, in steps as large as may be.
  Status Advance(int32_t end, bool sample);

  Executor& executor_;
  std::unique_ptr<KvManager> cache_;
  std::vector<Row> rows_;
  SamplingParams greedy_;
  StepInput input_;
  StepOutput output_;
};

}  // namespace lockstep
