#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/sampling_options.h"
#include "apps/cli/settings.h"
#include "apps/serving/loaded_model.h"
#include "apps/serving/stream.h"

namespace lockstep {
namespace {

struct GenerateOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string prompt;
};

Status Generate(const GenerateOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedModel loaded, LoadForServing(options.model));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<TokenId> prompt, loaded.tokenizer->Encode(options.prompt));
  Interrupt interrupt;
  const auto show = [](const GenerationEvent& event) {
    std::fwrite(event.text.data(), 1, event.text.size(), stdout);
    std::fflush(stdout);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      const GenerationEnd end,
      Stream(*loaded.engine, options.sampling.Request(std::move(prompt)), interrupt.flag(), show));
  std::fputc('\n', stdout);
  return end.status;
}

}  // namespace

void AddGenerateCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<GenerateOptions>();
  options->model.max_rows = 1;  // the KV cache is sized for so many
  CLI::App* command = app->add_subcommand("generate", "Continue a text and print what comes");
  AddModelOptions(command, /*positional=*/true, &options->model);
  AddCapacityOptions(command, &options->model);
  command->add_option("prompt", options->prompt, "The text to continue")->required();
  AddSamplingOptions(command, &options->sampling);
  RunWithSettings(command, [options] { return Generate(*options); }, exit_code);
}

}  // namespace lockstep
