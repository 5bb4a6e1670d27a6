#include "apps/cli/settings.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <regex>
#include <utility>

#include "apps/cli/nearest.h"
#include "apps/cli/report.h"

namespace lockstep {
namespace {

std::string VariableOf(const std::string& name) {
  std::string variable = "LOCKSTEP_" + name;
  for (char& c : variable) {
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

bool IsFlag(const CLI::Option& option) { return option.get_expected_max() == 0; }
bool TakesMany(const CLI::Option& option) { return option.get_expected_max() > 1; }

// Gives the option values as the command line would. Errors name their source.
void Give(CLI::Option* option, std::vector<std::string> values, const std::string& source) {
  try {
    for (std::string& value : values) {
      option->add_result(
          IsFlag(*option) ? option->get_flag_value(option->get_lnames().front(), value) : value);
    }
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    throw CLI::ValidationError(source, error.what());
  }
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// TOML's spelling of a value: numbers and booleans as they are, the rest in quotes; in single ones,
// within which nothing is escaped, where double ones would need a backslash.
std::string Toml(const std::string& value) {
  static const std::regex bare("true|false|[+-]?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?");
  if (std::regex_match(value, bare)) return value;
  const bool has_single = value.find('\'') != std::string::npos;
  if (!has_single && value.find_first_of("\"\\") != std::string::npos) return "'" + value + "'";
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

Settings::Settings(CLI::App* command) : command_(command) {
  for (CLI::Option* option : command->get_options()) {
    if (option->get_lnames().empty() || option == command->get_help_ptr()) continue;
    if (!option->get_configurable()) continue;
    settings_.push_back({option, option->get_lnames().front(), option->get_required()});
    option->required(false);
    option->envname("");
  }
}

void Settings::Resolve(const std::string& file) {
  for (Setting& setting : settings_) {
    if (setting.option->count() > 0) setting.source = "flag --" + setting.name;
  }
  ReadEnvironment();
  if (!file.empty()) ReadFile(file);
}

void Settings::ReadEnvironment() {
  for (Setting& setting : settings_) {
    if (setting.option->count() > 0) continue;
    const std::string variable = VariableOf(setting.name);
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0') continue;
    setting.source = "environment " + variable;
    Give(setting.option,
         TakesMany(*setting.option) ? Split(value) : std::vector<std::string>{value}, variable);
  }
}

void Settings::ReadFile(const std::string& file) {
  std::vector<std::string> known;
  for (const Setting& setting : settings_) known.push_back(setting.name);
  const std::string source = "file " + file;
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_file(file)) {
    if (item.name == "++" || item.name == "--") continue;  // a table begins or ends
    const bool here = item.parents.empty() ||
                      (item.parents.size() == 1 && item.parents.front() == command_->get_name());
    const auto found = std::find_if(settings_.begin(), settings_.end(),
                                    [&](const Setting& s) { return here && s.name == item.name; });
    if (found == settings_.end()) {
      const std::string near = Nearest(item.fullname(), known);
      throw CLI::ConfigError(fmt::format("{}: there is no setting '{}'{}", file, item.fullname(),
                                         near.empty() ? "" : "; did you mean " + near + "?"));
    }
    if (found->source == source) {
      throw CLI::ConfigError(fmt::format("{}: '{}' is there twice", file, item.name));
    }
    if (found->option->count() > 0) continue;
    found->source = source;
    if (item.inputs.empty() && TakesMany(*found->option)) continue;  // [], as Print has it
    Give(found->option, item.inputs, file + ": " + item.name);
  }
}

void Settings::CheckRequired() const {
  for (const Setting& setting : settings_) {
    if (setting.required && setting.option->count() == 0) {
      throw CLI::RequiredError("--" + setting.name);
    }
  }
}

void Settings::Hide(const CLI::Option* option) {
  for (Setting& setting : settings_) setting.hidden |= setting.option == option;
}

std::string Settings::Print() const {
  std::string out;
  for (const Setting& setting : settings_) {
    std::vector<std::string> values = setting.option->results();
    if (setting.option->count() == 0) {
      const std::string by_default =
          IsFlag(*setting.option) ? "false" : setting.option->get_default_str();
      values.assign(by_default.empty() ? 0 : 1, by_default);
    }
    std::string line = setting.name + " = ";
    if (setting.hidden && !values.empty()) {
      line = "# " + line + "(not shown)";
    } else if (TakesMany(*setting.option)) {
      for (std::string& value : values) value = Toml(value);
      line += fmt::format("[{}]", fmt::join(values, ", "));
    } else if (values.empty()) {
      line = "# " + line;
    } else {
      line += Toml(values.back());
    }
    out += fmt::format("{:<40} # {}\n", line, setting.source);
  }
  return out;
}

void RunWithSettings(CLI::App* command, std::function<Status()> run, int* exit_code) {
  auto settings = std::make_shared<Settings>(command);
  command->callback([settings, run = std::move(run), exit_code] {
    settings->Resolve("");
    settings->CheckRequired();
    const Status status = run();
    if (!status.ok()) *exit_code = ReportFailure(status);
  });
}

}  // namespace lockstep
