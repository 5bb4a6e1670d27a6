#include "apps/verify/verify.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <utility>

#include "apps/cli/commands.h"
#include "apps/cli/settings.h"
#include "apps/serving/loaded_model.h"

namespace lockstep {
namespace {

struct VerifyCommand {
  ModelOptions model;
  VerifyOptions verify;
};

void Print(const Variation& variation) {
  std::printf("%-58s %7d %8d %8lld %8lld   %s\n", variation.name.c_str(), variation.threads,
              variation.answers, static_cast<long long>(variation.tokens),
              static_cast<long long>(variation.cached_tokens),
              variation.different == 0 ? "the same bytes" : "DIFFERENT");
  if (variation.different > 0) {
    std::printf("  %d answers differ; %s\n", variation.different, variation.first.c_str());
  }
  std::fflush(stdout);
}

Status VerifyModel(VerifyCommand command) {
  const EngineFactory make_engine =
      [&](int32_t threads, std::function<int32_t(int32_t)> cut) -> Result<std::unique_ptr<Engine>> {
    ModelOptions options = command.model;
    options.threads = threads;
    EngineOptions engine;
    engine.chunk_cut = std::move(cut);
    LOCKSTEP_ASSIGN_OR_RETURN(LoadedModel loaded, LoadForServing(options, std::move(engine)));
    return std::move(loaded.engine);
  };
  command.verify.threads = ThreadsOf(command.model);
  std::printf("%-58s %7s %8s %8s %8s\n", "the same requests", "threads", "answers", "tokens",
              "cached");
  LOCKSTEP_ASSIGN_OR_RETURN(const bool same, Verify(make_engine, command.verify, Print));
  if (!same) {
    return Internal("the bytes of an answer do not depend on its request alone; please report it");
  }
  std::printf("every answer has the same bytes\n");
  return OkStatus();
}

}  // namespace

void AddVerifyCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<VerifyCommand>();
  options->model.max_rows = 8;
  CLI::App* command = app->add_subcommand(
      "verify", "Show on this machine that an answer's bytes depend on its request alone");
  AddModelOptions(command, /*positional=*/true, &options->model);
  AddCapacityOptions(command, &options->model);
  command->add_option("--requests", options->verify.requests, "How many requests to compare")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--seed", options->verify.seed, "Of the requests, which are random")
      ->capture_default_str();
  RunWithSettings(command, [options] { return VerifyModel(*options); }, exit_code);
}

}  // namespace lockstep
