// The `lockstep` program: one subcommand a file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "apps/cli/commands.h"
#include "apps/cli/nearest.h"
#include "apps/serving/version.h"
#include "base/log.h"

namespace lockstep {
namespace {

// The flags and commands that `app` knows, for suggestions.
std::vector<std::string> KnownWords(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(command->get_name());
  }
  const CLI::App& current = app.get_subcommands().empty() ? app : *app.get_subcommands().front();
  for (const CLI::Option* option : current.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

int Fail(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // help and version
  std::fprintf(stderr, "lockstep: %s\n", error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extras = app.remaining(true);
    const std::string near = extras.empty() ? "" : Nearest(extras.front(), KnownWords(app));
    if (!near.empty()) std::fprintf(stderr, "Did you mean %s?\n", near.c_str());
  }
  std::fprintf(stderr, "lockstep --help, or lockstep COMMAND --help, lists what there is.\n");
  return 2;
}

int Main(int argc, char** argv) {
  CLI::App app{
      "lockstep serves language models on a CPU. The bytes of an answer depend on its request "
      "alone."};
  app.set_version_flag("--version", std::string("lockstep ") + kVersion);
  app.require_subcommand(1);
  std::string log_level = "info";
  app.add_option("--log-level", log_level, "debug, info, warning, error or off")
      ->envname("LOCKSTEP_LOG_LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))
      ->each([](const std::string& name) { SetLogLevel(LogLevelFromName(name)); });
  int exit_code = 0;
  AddServeCommand(&app, &exit_code);
  AddGenerateCommand(&app, &exit_code);
  AddChatCommand(&app, &exit_code);
  AddScoreCommand(&app, &exit_code);
  AddBenchCommand(&app, &exit_code);
  AddInspectCommand(&app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Fail(app, error);
  }
  return exit_code;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }
