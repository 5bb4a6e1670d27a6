// Settings: the options of a command, each from the first of: its flag, the environment variable
// LOCKSTEP_<NAME>, a TOML file, its default. What a flag may hold the others may hold as well.
// Command-line side; not thread-safe. Borrows the command.
//
// A variable or key for an option that takes several values holds a comma-separated list or an
// array. A file has the flags' long names as keys, at its top or in a table of the command's name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep {

class Settings {
 public:
  // Takes over what the command's options say of the environment and of being required. REQUIRES:
  // all options but --help are added.
  explicit Settings(CLI::App* command);

  // REQUIRES: the command line was parsed: called from the command's callback. `file` may be empty.
  // Throws CLI::ParseError naming flag, variable or key, as the parsing of the command line does.
  void Resolve(const std::string& file);

  // Throws CLI::RequiredError when a required option has no value.
  void CheckRequired() const;

  // What the option holds is a secret: Print does not show it.
  void Hide(const CLI::Option* option);

  // Every option as a line of TOML with its source; those without a value are comments. Reads back
  // as a file.
  std::string Print() const;

 private:
  struct Setting {
    CLI::Option* option = nullptr;
    std::string name;  // the long flag without "--"
    bool required = false;
    bool hidden = false;
    std::string source = "default";
  };

  void ReadEnvironment();
  void ReadFile(const std::string& file);

  CLI::App* const command_;
  std::vector<Setting> settings_;
};

// Makes `run` what the command does, with settings from its flags and the environment alone; a
// failure is reported and sets *exit_code. REQUIRES: as the constructor of Settings.
void RunWithSettings(CLI::App* command, std::function<Status()> run, int* exit_code);

}  // namespace lockstep
