#include "weights/inspect.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/report.h"

namespace lockstep {

void AddInspectCommand(CLI::App* app, int* exit_code) {
  struct Options {
    std::string file;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app->add_subcommand("inspect", "Show what a checkpoint holds, without loading it");
  command->add_option("file", options->file, "A GGUF or safetensors file, or a Hugging Face folder")
      ->required();
  command->add_flag("--json", options->json, "As JSON");
  command->callback([options, exit_code] {
    const auto checkpoint = Checkpoint::Open(options->file);
    if (!checkpoint.ok()) {
      *exit_code = ReportFailure(checkpoint.status());
      return;
    }
    const std::string text = options->json ? InspectJson(**checkpoint) : InspectText(**checkpoint);
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
}

}  // namespace lockstep
