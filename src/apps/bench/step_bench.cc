#include "apps/bench/step_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

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
  int64_t block_bytes = 0;
  for (const CacheGroupSpec& group : executor->info().cache_groups)
    block_bytes += group.block_bytes;
  const auto blocks = static_cast<int32_t>(kv_bytes / block_bytes);
  StepBench bench(executor, std::vector<int32_t>(executor->info().cache_groups.size(), blocks));
  LOCKSTEP_RETURN_IF_ERROR(executor->AllocateCache(bench.blocks_));
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
  rows_.assign(rows, Row());
  ids_.clear();
  for (int32_t r = 0; r < rows; ++r) {
    Row& row = rows_[r];
    for (int32_t i = 0; i < prompt; ++i) {
      row.sequence.push_back(static_cast<TokenId>((uint32_t(i) * 2654435761u + uint32_t(r) * 97u) %
                                                  uint32_t(info.vocab_size)));
    }
    for (size_t g = 0; g < info.cache_groups.size(); ++g) {
      const int32_t per_row =
          (tokens + info.cache_groups[g].block_tokens - 1) / info.cache_groups[g].block_tokens;
      if (per_row * rows > blocks_[g]) {
        return ResourceExhausted(
            fmt::format("{} rows of {} tokens do not fit the KV cache", rows, tokens), "kv-gib");
      }
      ids_.emplace_back(per_row);
      std::iota(ids_.back().begin(), ids_.back().end(), r * per_row);
    }
  }
  for (int32_t r = 0; r < rows; ++r) {
    const size_t groups = info.cache_groups.size();
    for (size_t g = 0; g < groups; ++g) rows_[r].tables.emplace_back(ids_[r * groups + g]);
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
      step.block_tables = row.tables;
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
  double cached = 0;  // bytes a position
  for (const CacheGroupSpec& group : info.cache_groups) {
    cached += static_cast<double>(group.block_bytes) / group.block_tokens;
  }
  result.bytes =
      tokens * (static_cast<double>(info.weight_bytes) + rows * cached * (context + 0.5 * tokens));
  result.multiply_adds =
      static_cast<double>(info.multiply_adds + info.head_multiply_adds) * rows * tokens;
  return Summary(result, std::move(seconds));
}

}  // namespace lockstep
