#include "apps/cli/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep {
namespace {

// A command with one option of each kind.
struct Command {
  Command() {
    sub = app.add_subcommand("serve");
    sub->add_option("--model", model)->required();
    sub->add_option("-p,--port", port)->check(CLI::Range(1, 9999))->capture_default_str();
    sub->add_option("--alias", aliases);
    sub->add_option("--kv", kv);
    sub->add_flag("--any-name", any);
    settings = std::make_unique<Settings>(sub);
  }
  // The error's text; empty when there was none.
  std::string Parse(std::vector<std::string> args, const std::string& file = "") {
    sub->callback([this, file] {
      settings->Resolve(file);
      settings->CheckRequired();
    });
    args.insert(args.begin(), "serve");
    std::reverse(args.begin(), args.end());
    try {
      app.parse(args);
      return "";
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
  }

  CLI::App app;
  CLI::App* sub = nullptr;
  std::unique_ptr<Settings> settings;
  std::string model;
  int port = 80;
  std::vector<std::string> aliases;
  std::string kv;
  bool any = false;
};

class SettingsTest : public ::testing::Test {
 protected:
  ~SettingsTest() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
    std::filesystem::remove(file_);
  }
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  std::string File(const std::string& content) {
    file_ = std::filesystem::temp_directory_path() /
            ("lockstep_settings_" + std::to_string(getpid()) + ".toml");
    std::ofstream(file_) << content;
    return file_;
  }
  std::vector<std::string> set_;
  std::filesystem::path file_;
};

TEST_F(SettingsTest, FlagThenEnvironmentThenFileThenDefault) {
  const std::string file =
      File("port = 1000\nmodel = \"from file\"\nkv = \"bf16\"\nany-name = true\n");
  Set("LOCKSTEP_PORT", "2000");
  Set("LOCKSTEP_MODEL", "from environment");
  Command command;
  EXPECT_EQ(command.Parse({"--model", "from flag"}, file), "");
  EXPECT_EQ(command.model, "from flag");
  EXPECT_EQ(command.port, 2000);
  EXPECT_EQ(command.kv, "bf16");
  EXPECT_TRUE(command.any);
  const std::string printed = command.settings->Print();
  EXPECT_NE(printed.find("model = \"from flag\""), std::string::npos) << printed;
  EXPECT_NE(printed.find("# flag --model\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("port = 2000"), std::string::npos) << printed;
  EXPECT_NE(printed.find("# environment LOCKSTEP_PORT\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("# file " + file + "\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("alias = []"), std::string::npos) << printed;
}

TEST_F(SettingsTest, WhatIsPrintedReadsBack) {
  Command first;
  ASSERT_EQ(first.Parse({"--model", "a \"b\" \\c", "--alias", "x", "y", "--port", "81"}), "");
  Command second;
  ASSERT_EQ(second.Parse({}, File(first.settings->Print())), "");
  EXPECT_EQ(second.model, first.model);
  EXPECT_EQ(second.port, 81);
  EXPECT_EQ(second.aliases, first.aliases);
  EXPECT_FALSE(second.any);
  EXPECT_EQ(second.kv, "");
}

TEST_F(SettingsTest, DefaultsAreShown) {
  Command command;
  ASSERT_EQ(command.Parse({"--model", "m"}), "");
  const std::string printed = command.settings->Print();
  EXPECT_NE(printed.find("port = 80 "), std::string::npos) << printed;
  EXPECT_NE(printed.find("# default\n"), std::string::npos);
  EXPECT_NE(printed.find("any-name = false "), std::string::npos);
}

TEST_F(SettingsTest, ATableOfTheCommandsNameAndLists) {
  Command command;
  EXPECT_EQ(command.Parse({}, File("[serve]\nmodel = \"m\"\nalias = [\"a\", \"b\"]\n")), "");
  EXPECT_EQ(command.model, "m");
  EXPECT_EQ(command.aliases, std::vector<std::string>({"a", "b"}));
  Set("LOCKSTEP_ALIAS", "c,d");
  Command other;
  EXPECT_EQ(other.Parse({"--model", "m"}), "");
  EXPECT_EQ(other.aliases, std::vector<std::string>({"c", "d"}));
}

TEST_F(SettingsTest, ErrorsNameTheSource) {
  EXPECT_NE(Command().Parse({}).find("--model"), std::string::npos);
  const std::string unknown = Command().Parse({"--model", "m"}, File("prt = 5\n"));
  EXPECT_NE(unknown.find("'prt'"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("did you mean port?"), std::string::npos) << unknown;
  EXPECT_NE(Command().Parse({"--model", "m"}, File("[other]\nport = 5\n")).find("other.port"),
            std::string::npos);
  const std::string range = Command().Parse({"--model", "m"}, File("port = 70000\n"));
  EXPECT_NE(range.find(": port"), std::string::npos) << range;
  EXPECT_NE(Command().Parse({"--model", "m"}, "/no/such/file").find("/no/such/file"),
            std::string::npos);
  Set("LOCKSTEP_PORT", "many");
  const std::string variable = Command().Parse({"--model", "m"});
  EXPECT_NE(variable.find("LOCKSTEP_PORT"), std::string::npos) << variable;
}

}  // namespace
}  // namespace lockstep
