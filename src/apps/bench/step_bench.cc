#include "apps/bench/step_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace lockstep {
namespace {

double Seconds(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

BenchResult Summary(BenchResult result, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  result.tokens_per_s = result.tokens / seconds[seconds.size() / 2];
  result.fastest = result.tokens / seconds.front();
  result.slowest = result.tokens / seconds.back();
  return result;
}

}  // namespace

Result<StepBench> StepBench::Create(Executor* executor, int64_t kv_bytes) {
  const ExecutorInfo& info = executor->info();
  LOCKSTEP_ASSIGN_OR_RETURN(auto cache, KvManager::Create(info.cache_groups, kv_bytes,
                                                          {.rows = info.max_step_rows,
                                                           .step_tokens = info.max_step_tokens,
                                                           .context = info.max_context,
                                                           .share_prefixes = false}));
  LOCKSTEP_RETURN_IF_ERROR(executor->AllocateCache(cache->pool_blocks()));
  StepBench bench(executor, std::move(cache));
  bench.greedy_.temperature = 0.0f;
  return bench;
}

Status StepBench::MakeRows(int32_t rows, int32_t prompt, int32_t tokens) {
  const ExecutorInfo& info = executor_.info();
  if (tokens > info.max_context) {
    return InvalidArgument(
        fmt::format("{} tokens are more than the context of {}", tokens, info.max_context),
        "context");
  }
  if (rows > info.max_step_rows) {
    return InvalidArgument(
        fmt::format("{} rows are more than --max-rows {}", rows, info.max_step_rows), "rows");
  }
  for (const Row& row : rows_) cache_->Release(row.slot);
  rows_.clear();
  for (int32_t r = 0; r < rows; ++r) {
    const std::optional<CacheSlot> slot = cache_->Admit(tokens);
    if (!slot) {
      return ResourceExhausted(
          fmt::format("{} rows of {} tokens do not fit the KV cache", rows, tokens), "kv-gib");
    }
    Row& row = rows_.emplace_back();
    row.slot = *slot;
    for (int32_t i = 0; i < prompt; ++i) {
      row.sequence.push_back(static_cast<TokenId>((uint32_t(i) * 2654435761u + uint32_t(r) * 97u) %
                                                  uint32_t(info.vocab_size)));
    }
  }
  return OkStatus();
}

Status StepBench::Advance(int32_t end, bool sample) {
  while (true) {
    input_.rows.clear();
    std::vector<Row*> stepped;
    int32_t budget = executor_.info().max_step_tokens;
    for (Row& row : rows_) {
      const int32_t count =
          std::min(budget, std::min(end, int32_t(row.sequence.size())) - row.computed);
      if (count <= 0) continue;
      StepRow step;
      step.sequence = row.sequence;
      step.begin = row.computed;
      step.count = count;
      step.prompt_tokens = static_cast<int32_t>(row.sequence.size());
      cache_->Reserve(row.slot, row.computed + count);
      step.block_tables = cache_->BlockTables(row.slot);
      step.sampling =
          sample && row.computed + count == int32_t(row.sequence.size()) ? &greedy_ : nullptr;
      input_.rows.push_back(step);
      stepped.push_back(&row);
      budget -= count;
    }
    if (stepped.empty()) return OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(executor_.Step(input_, &output_));
    for (size_t i = 0; i < stepped.size(); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(output_.rows[i].status);
      stepped[i]->computed += input_.rows[i].count;
      cache_->Commit(stepped[i]->slot, std::span(stepped[i]->sequence).first(stepped[i]->computed));
      if (input_.rows[i].sampling != nullptr) stepped[i]->sequence.push_back(output_.rows[i].token);
    }
  }
}

Result<BenchResult> StepBench::Prompt(int32_t tokens, int32_t repeat) {
  std::vector<double> seconds;
  for (int32_t i = 0; i < repeat; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(MakeRows(1, tokens, tokens));
    const auto begin = std::chrono::steady_clock::now();
    LOCKSTEP_RETURN_IF_ERROR(Advance(tokens, true));
    seconds.push_back(Seconds(begin));
  }
  const ExecutorInfo& info = executor_.info();
  BenchResult result{"prompt", 1, 0, tokens};
  const int32_t steps = (tokens + info.max_step_tokens - 1) / info.max_step_tokens;
  result.bytes = static_cast<double>(info.weight_bytes) * steps;
  result.multiply_adds = static_cast<double>(info.multiply_adds) * tokens +
                         static_cast<double>(info.head_multiply_adds);
  return Summary(result, std::move(seconds));
}

Result<BenchResult> StepBench::Decode(int32_t rows, int32_t context, int32_t tokens,
                                      int32_t repeat) {
  std::vector<double> seconds;
  for (int32_t i = 0; i < repeat; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(MakeRows(rows, context, context + tokens));
    LOCKSTEP_RETURN_IF_ERROR(Advance(context, true));
    const auto begin = std::chrono::steady_clock::now();
    LOCKSTEP_RETURN_IF_ERROR(Advance(context + tokens, true));
    seconds.push_back(Seconds(begin));
  }
  const ExecutorInfo& info = executor_.info();
  BenchResult result{"decode", rows, context, rows * tokens};
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int64_t cached,
      SequenceBytes(info.cache_groups, context + (tokens + 1) / 2, info.max_step_tokens));
  result.bytes = static_cast<double>(tokens) *
                 (static_cast<double>(info.weight_bytes) + static_cast<double>(rows * cached));
  result.multiply_adds =
      static_cast<double>(info.multiply_adds + info.head_multiply_adds) * rows * tokens;
  return Summary(result, std::move(seconds));
}

}  // namespace lockstep
