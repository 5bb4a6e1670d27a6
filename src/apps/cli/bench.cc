#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench/machine_limits.h"
#include "apps/bench/step_bench.h"
#include "apps/cli/commands.h"
#include "apps/cli/settings.h"
#include "apps/serving/loaded_model.h"
#include "kernels/kernels.h"

namespace lockstep {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::vector<int32_t> prompt = {512, 2048};
  int32_t generate = 128;
  std::vector<int32_t> rows = {1, 8, 32};
  std::vector<int32_t> context = {128, 2048};
  int32_t repeat = 3;
  bool json = false;
};

// What the threads of the run reach at most, together.
struct Machine {
  double read_bytes_per_s = 0;
  double multiply_adds_per_s = 0;  // 0: not known of this instruction set
};

Machine MeasureMachine(int32_t threads, bool integer_products) {
  constexpr size_t kRead = size_t{64} << 20;
  const bench::Limits limits = bench::MeasureLimits(kernels::Table().isa);
  return {bench::ReadBandwidth(kRead, threads),
          threads * (integer_products ? limits.int8_macs_per_s : limits.f32_macs_per_s)};
}

double Share(double work, double seconds, double limit) {
  return limit > 0 ? work / seconds / limit : 0;
}

nlohmann::ordered_json ToJson(const BenchResult& r, const Machine& machine) {
  const double seconds = r.tokens / r.tokens_per_s;
  return {{"work", r.work},
          {"rows", r.rows},
          {"context", r.context},
          {"tokens", r.tokens},
          {"tokens_per_s", r.tokens_per_s},
          {"fastest", r.fastest},
          {"slowest", r.slowest},
          {"read_share", Share(r.bytes, seconds, machine.read_bytes_per_s)},
          {"peak_share", Share(r.multiply_adds, seconds, machine.multiply_adds_per_s)}};
}

Status Bench(BenchOptions options) {
  options.model.max_rows = std::max(1, *std::max_element(options.rows.begin(), options.rows.end()));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, LoadExecutor(options.model));
  LOCKSTEP_ASSIGN_OR_RETURN(const MemoryPlan memory, PlanMemory(options.model, executor->info()));
  LOCKSTEP_ASSIGN_OR_RETURN(StepBench bench, StepBench::Create(executor.get(), memory.kv));
  const int32_t threads = ThreadsOf(options.model);
  const Machine machine = MeasureMachine(threads, executor->info().integer_products);
  if (!options.json) {
    std::printf("%d threads read %.1f GB/s and do %.0f G multiply-adds/s at most\n", threads,
                machine.read_bytes_per_s * 1e-9, machine.multiply_adds_per_s * 1e-9);
  }
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  const auto report = [&](const Result<BenchResult>& result) {
    LOCKSTEP_RETURN_IF_ERROR(result.status());
    if (options.json) {
      results.push_back(ToJson(*result, machine));
    } else {
      const double seconds = result->tokens / result->tokens_per_s;
      std::printf(
          "%-6s %4d rows %6d context %7d tokens %10.1f tokens/s (%.1f to %.1f), "
          "%.0f %% of read, %.0f %% of peak\n",
          result->work.c_str(), result->rows, result->context, result->tokens, result->tokens_per_s,
          result->slowest, result->fastest,
          100 * Share(result->bytes, seconds, machine.read_bytes_per_s),
          100 * Share(result->multiply_adds, seconds, machine.multiply_adds_per_s));
      std::fflush(stdout);
    }
    return OkStatus();
  };
  for (int32_t tokens : options.prompt) {
    LOCKSTEP_RETURN_IF_ERROR(report(bench.Prompt(tokens, options.repeat)));
  }
  for (int32_t context : options.context) {
    for (int32_t rows : options.rows) {
      LOCKSTEP_RETURN_IF_ERROR(
          report(bench.Decode(rows, context, options.generate, options.repeat)));
    }
  }
  if (options.json) std::printf("%s\n", results.dump(1).c_str());
  return OkStatus();
}

}  // namespace

void AddBenchCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app->add_subcommand("bench", "Time prompts and decoding on this machine");
  AddModelOptions(command, /*positional=*/true, &options->model);
  command->add_option("--prompt", options->prompt, "Lengths of prompts to read")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--generate", options->generate, "Tokens each row decodes")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--rows", options->rows, "Numbers of rows that decode together")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--context", options->context, "Tokens a row holds before it decodes")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--repeat", options->repeat, "Runs of each; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "A JSON list of results");
  RunWithSettings(command, [options] { return Bench(*options); }, exit_code);
}

}  // namespace lockstep
