#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/settings.h"
#include "apps/serving/loaded_model.h"
#include "platform/memory.h"

namespace lockstep {
namespace {

struct FitOptions {
  ModelOptions model;
  bool json = false;
};

double Mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void PrintText(const MemoryPlan& plan, int64_t program, const ModelOptions& options,
               const ExecutorInfo& info) {
  const int64_t sum = program + plan.weights + plan.activations + plan.kv;
  std::printf("%-14s %10.1f MiB  packed\n", "weights", Mib(plan.weights));
  std::printf("%-14s %10.1f MiB  of a step of up to %d tokens\n", "activations",
              Mib(plan.activations), info.max_step_tokens);
  std::printf("%-14s %10.1f MiB  tokenizer, template, tables\n", "program", Mib(program));
  std::printf("%-14s %10.1f MiB  %s, %s\n", "KV cache", Mib(plan.kv),
              info.cache_groups.front().scheme.c_str(),
              options.kv_gib > 0                         ? "as --kv-gib says"
              : plan.kv < plan.kv_row * options.max_rows ? "half of what is free"
                                                         : "what all rows can use");
  std::printf("%-14s %10.1f MiB  of memory that is kept; %.1f MiB stay free\n", "together",
              Mib(sum), Mib(plan.free - plan.kv));
  std::printf("%-14s %10.1f KiB\n", "a token", static_cast<double>(plan.kv_token) / 1024);
  std::printf("%-14s %10.1f MiB  of %d tokens\n", "a row", Mib(plan.kv_row), info.max_context);
  std::printf("%-14s %10d tokens%s\n", "longest row", plan.longest,
              plan.longest == info.max_context ? ", all of the context" : "");
  std::printf("%-14s %10d of that length at once\n", "rows", plan.rows);
}

nlohmann::ordered_json ToJson(const MemoryPlan& plan, int64_t program, const ExecutorInfo& info) {
  return {{"weights", plan.weights},
          {"activations", plan.activations},
          {"program", program},
          {"kv", plan.kv},
          {"together", program + plan.weights + plan.activations + plan.kv},
          {"free", plan.free},
          {"kv_token", plan.kv_token},
          {"kv_row", plan.kv_row},
          {"context", info.max_context},
          {"longest_row", plan.longest},
          {"rows", plan.rows}};
}

Status Fit(FitOptions options) {
  options.model.sizes_only = true;
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedModel loaded, LoadForServing(options.model));
  const int64_t program = AnonymousMemory();
  if (options.json) {
    std::printf("%s\n", ToJson(loaded.memory, program, loaded.engine->info()).dump(1).c_str());
  } else {
    PrintText(loaded.memory, program, options.model, loaded.engine->info());
  }
  return OkStatus();
}

}  // namespace

void AddFitCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<FitOptions>();
  CLI::App* command = app->add_subcommand(
      "fit", "What a model takes of memory, and how much fits, without loading it");
  AddModelOptions(command, /*positional=*/true, &options->model);
  AddCapacityOptions(command, &options->model);
  command->add_flag("--json", options->json, "One JSON object, in bytes");
  RunWithSettings(command, [options] { return Fit(*options); }, exit_code);
}

}  // namespace lockstep
