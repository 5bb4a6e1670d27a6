// The `lockstep` program: one subcommand a file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
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

// `argv` is looked through for a word that nothing knows.
int Fail(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app.exit(error);  // help and version
  std::fprintf(stderr, "lockstep: %s\n", error.what());
  const std::vector<std::string> known = KnownWords(app);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool flag = word.starts_with("--");
    if ((!flag && i > 1) || std::find(known.begin(), known.end(), word) != known.end()) continue;
    const std::string near = Nearest(word, known);
    if (near.empty() || near == word.substr(0, word.find('='))) continue;
    std::fprintf(stderr, "Did you mean %s?\n", near.c_str());
    break;
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
  AddFitCommand(&app, &exit_code);
  AddVerifyCommand(&app, &exit_code);
  AddInspectCommand(&app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Fail(app, error, argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep: %s\n", error.what());
    return 1;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "lockstep: the output could not be written\n");
    return 1;
  }
  return exit_code;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }
