#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/line_reader.h"
#include "apps/cli/sampling_options.h"
#include "apps/cli/settings.h"
#include "apps/serving/loaded_model.h"
#include "apps/serving/stream.h"
#include "text/utf8.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
};

// Escape sequences, or nothing where the output is not a terminal or NO_COLOR is set.
struct Colours {
  bool on = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  const char* prompt() const { return on ? "\x1b[1;32m" : ""; }
  const char* note() const { return on ? "\x1b[2m" : ""; }
  const char* off() const { return on ? "\x1b[0m" : ""; }
};

class Chat {
 public:
  Chat(const LoadedModel& loaded, const ChatOptions& options) : loaded_(loaded), options_(options) {
    Reset();
  }

  Status Run();

 private:
  void Reset();
  // Answers the conversation so far and appends the answer to it.
  Status Answer();
  // One line of input; false at its end.
  bool ReadLine(std::string* line);

  const LoadedModel& loaded_;
  const ChatOptions& options_;
  const Colours colours_;
  Interrupt interrupt_;
  LineReader lines_{STDIN_FILENO, interrupt_.descriptor()};
  Json messages_;
};

void Chat::Reset() {
  messages_ = Json::array();
  if (!options_.system.empty()) {
    messages_.push_back({{"role", "system"}, {"content", options_.system}});
  }
}

bool Chat::ReadLine(std::string* line) {
  while (true) {
    std::printf("%s> %s", colours_.prompt(), colours_.off());
    std::fflush(stdout);
    const LineInput input = lines_.Read(line);
    if (input != LineInput::kInterrupted) return input == LineInput::kLine;
    // Ctrl-C at the prompt drops the line.
    interrupt_.Clear();
    std::printf("\n%sCtrl-D or /exit leaves.%s\n", colours_.note(), colours_.off());
  }
}

Status Chat::Answer() {
  const Json context = {{"messages", messages_}, {"add_generation_prompt", true}};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, loaded_.chat_template->Render(context.dump()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<TokenId> prompt,
      loaded_.tokenizer->Encode(text, {.add_special = false, .parse_special = true}));
  std::string answer;
  const auto show = [&](const GenerationEvent& event) {
    answer += event.text;
    std::fwrite(event.text.data(), 1, event.text.size(), stdout);
    std::fflush(stdout);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const GenerationEnd end,
                            Stream(*loaded_.engine, options_.sampling.Request(std::move(prompt)),
                                   interrupt_.flag(), show));
  interrupt_.Clear();
  LOCKSTEP_RETURN_IF_ERROR(end.reason == FinishReason::kError ? end.status : OkStatus());
  const char* how = end.reason == FinishReason::kCancelled ? ", stopped"
                    : end.reason == FinishReason::kLength  ? ", cut at the limit"
                                                           : "";
  std::printf("\n%s[%d + %d tokens%s]%s\n", colours_.note(), end.usage.prompt_tokens,
              end.usage.completion_tokens, how, colours_.off());
  messages_.push_back({{"role", "assistant"}, {"content", answer}});
  return OkStatus();
}

Status Chat::Run() {
  std::printf("%s%s. /reset starts anew, /exit or Ctrl-D leaves, Ctrl-C stops an answer.%s\n",
              colours_.note(), loaded_.id.c_str(), colours_.off());
  std::string line;
  while (ReadLine(&line)) {
    if (line == "/exit") break;
    if (line == "/reset") {
      Reset();
      continue;
    }
    if (line.empty()) continue;
    if (!IsValidUtf8(line)) {
      std::printf("%sThat line is not valid UTF-8.%s\n", colours_.note(), colours_.off());
      continue;
    }
    messages_.push_back({{"role", "user"}, {"content", line}});
    const Status status = Answer();
    if (!status.ok()) {
      // The turn is taken back, so that the conversation can go on.
      messages_.erase(messages_.size() - 1);
      std::printf("\n%s%s%s\n", colours_.note(), status.ToString().c_str(), colours_.off());
    }
  }
  return OkStatus();
}

Status RunChat(const ChatOptions& options) {
  if (!IsValidUtf8(options.system)) return InvalidArgument("not valid UTF-8", "--system");
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedModel loaded, LoadForServing(options.model));
  if (loaded.chat_template == nullptr) {
    return FailedPrecondition(options.model.model +
                              ": the checkpoint has no chat template; use `lockstep generate`");
  }
  return Chat(loaded, options).Run();
}

}  // namespace

void AddChatCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<ChatOptions>();
  options->model.max_rows = 1;  // the KV cache is sized for so many
  CLI::App* command = app->add_subcommand("chat", "Talk to a model in the terminal");
  AddModelOptions(command, /*positional=*/true, &options->model);
  AddCapacityOptions(command, &options->model);
  command->add_option("--system", options->system, "The system message");
  AddSamplingOptions(command, &options->sampling);
  RunWithSettings(command, [options] { return RunChat(*options); }, exit_code);
}

}  // namespace lockstep
