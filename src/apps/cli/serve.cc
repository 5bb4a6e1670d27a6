#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <future>
#include <memory>
#include <thread>

#include "apps/cli/commands.h"
#include "apps/cli/report.h"
#include "apps/cli/settings.h"
#include "apps/common/number_between.h"
#include "apps/serving/loaded_model.h"
#include "apps/serving/version.h"
#include "base/log.h"
#include "server/access.h"
#include "server/server.h"

namespace lockstep {
namespace {

// After the drain: for clients that are still reading what their answers came to.
constexpr std::chrono::seconds kLastWords{2};

struct ServeOptions {
  ModelOptions model;
  ServerOptions server;
  std::vector<std::string> aliases;
  bool any_model_name = false;
  int32_t drain_seconds = 30;
  bool example = false;
  std::string trace;  // a file; empty: none
  std::string api_key_file;
  int64_t response_ttl_seconds = 24 * 60 * 60;
  int64_t response_store_mib = 64;
};

// The signals that end the server, taken by one thread that waits for them. Constructed before any
// other thread, so that all inherit the mask.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    for (int signal : {SIGINT, SIGTERM}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    // A client that is gone, a file that grew to the limit for files: errors where they happen.
    for (int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  }
  // Starts to listen. Until Serving() was called a signal ends the process at once, in order, since
  // there is nothing to finish. Then the first one is what Wait() waits for, and the second ends
  // the process with 128 and its number.
  void Listen() {
    std::thread([this] {
      int signal = 0;
      sigwait(&set_, &signal);
      if (!serving_) {
        LogInfo("ended by signal {} while the model was loading", signal);
        _exit(0);
      }
      first_.set_value();
      sigwait(&set_, &signal);
      _exit(128 + signal);
    }).detach();
  }
  void Serving() { serving_ = true; }
  void Wait() { first_.get_future().wait(); }

 private:
  sigset_t set_;
  std::atomic<bool> serving_{false};
  std::promise<void> first_;
};

// The signals of the process; never destroyed, since their thread never ends.
EndSignals& Signals() {
  static EndSignals* signals = new EndSignals();
  return *signals;
}

ServedModel Describe(const LoadedModel& loaded, const ServeOptions& options) {
  const ExecutorInfo& info = loaded.engine->info();
  ServedModel served;
  served.id = loaded.id;
  served.aliases = options.aliases;
  served.any_model_name = options.any_model_name;
  served.created = static_cast<int64_t>(std::time(nullptr));
  served.fingerprint = std::string("lockstep-") + kVersion + "-" + info.fingerprint;
  served.version = kVersion;
  served.vocab_size = info.vocab_size;
  served.max_context = info.max_context;
  served.engine = loaded.engine.get();
  served.tokenizer = loaded.tokenizer;
  served.chat_template = loaded.chat_template;
  served.grammars = std::make_shared<GrammarCompiler>(loaded.tokenizer, info.vocab_size,
                                                      loaded.engine->options().eos_ids);
  if (options.response_store_mib > 0 && options.response_ttl_seconds > 0) {
    ResponseStoreOptions store;
    store.max_bytes = static_cast<size_t>(options.response_store_mib) << 20;
    store.ttl = std::chrono::seconds(options.response_ttl_seconds);
    served.responses = std::make_shared<ResponseStore>(std::move(store));
  }
  return served;
}

// An address as a URL has it: IPv6 in brackets.
std::string HttpAddress(const std::string& host, int port) {
  const bool bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return bare_v6 ? fmt::format("http://[{}]:{}", host, port)
                 : fmt::format("http://{}:{}", host, port);
}

// For a newcomer's terminal: what to paste into another one.
void PrintExample(const std::string& address) {
  fmt::print(
      R"(
lockstep listens on {0}. Ctrl-C ends it. To try it, paste this in another terminal:

curl -N {0}/v1/chat/completions -H 'Content-Type: application/json' -d '{{
  "messages": [{{"role": "user", "content": "Name three colours of the rainbow."}}],
  "max_tokens": 64, "temperature": 0, "stream": true}}'

)",
      address);
  std::fflush(stdout);
}

// What the drain has left of its time, and a moment in any case.
void FlushPrefixes(Engine& engine, std::chrono::steady_clock::time_point deadline) {
  const auto moment = std::chrono::steady_clock::now() + kLastWords;
  const Status status = engine.FlushPrefixes(std::max(deadline, moment));
  if (!status.ok()) LogWarning("not all prefixes were kept: {}", status.message());
}

Status Serve(ServeOptions options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckKeys(options.server.api_keys));
  if (!options.api_key_file.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto keys, ReadKeyFile(options.api_key_file));
    options.server.api_keys.insert(options.server.api_keys.end(), keys.begin(), keys.end());
  }
  EndSignals& signals = Signals();
  if (!options.trace.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.server.tracer, Tracer::Open(options.trace));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Bind(options.server));
  signals.Listen();
  server->Start();
  std::atomic<bool> dead{false};
  // A dead engine has answered every request with an error; the process ends so that it is
  // restarted.
  EngineOptions engine;
  engine.tracer = options.server.tracer;
  engine.on_fatal = [&](const Status& status) {
    LogError("the engine cannot go on: {}", status.ToString());
    dead = true;
    kill(getpid(), SIGTERM);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedModel loaded,
                            LoadForServing(options.model, std::move(engine)));
  signals.Serving();
  server->SetModel(Describe(loaded, options));
  const std::string address = HttpAddress(options.server.host, server->port());
  LogInfo("serving {} on {}", loaded.id, address);
  if (options.example) PrintExample(address);
  signals.Wait();

  LogInfo("ending: running requests have {} seconds", options.drain_seconds);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(dead ? 0 : options.drain_seconds);
  // The engine ends what is left at the deadline; connections get a moment more to be told so.
  std::thread drain([&] { loaded.engine->Drain(deadline); });
  server->Stop(deadline + kLastWords);
  drain.join();
  if (!dead && !options.model.prefix_dir.empty()) FlushPrefixes(*loaded.engine, deadline);
  return dead ? Internal("the engine died") : OkStatus();
}

}  // namespace

void AddServeCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app->add_subcommand("serve", "Serve a model over HTTP");
  AddModelOptions(command, /*positional=*/false, &options->model);
  AddCapacityOptions(command, &options->model);
  command->add_option("--host", options->server.host, "The address to listen on")
      ->capture_default_str();
  command->add_option("-p,--port", options->server.port, "The port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--step-budget-ms", options->model.step_budget_ms,
                   "How long prompts may hold up the next tokens of running rows; 0: as long as "
                   "--step-tokens take")
      ->check(CLI::Range(0, 60000))
      ->capture_default_str();
  command->add_flag("--no-prefix-cache,--no-enable-prefix-caching,--no-cache-prompt",
                    options->model.no_prefix_cache,
                    "Compute every prompt whole, whatever was computed before");
  command
      ->add_option("--prefix-dir", options->model.prefix_dir,
                   "Keep cached prefixes in this folder too, so that they survive a restart")
      ->type_name("DIR");
  command
      ->add_option("--prefix-dir-gib", options->model.prefix_dir_gib,
                   "What they may take there in GiB; those that were not used for longest go")
      ->check(NumberBetween(1e-6, 1e6))
      ->capture_default_str();
  command->add_option("--alias", options->aliases, "Another name that requests may call the model")
      ->check(CLI::Validator(
          [](std::string& name) { return name.empty() ? "a name has no characters" : ""; },
          "NAME"));
  command->add_flag("--any-model-name", options->any_model_name,
                    "Answer requests whatever model they name");
  command
      ->add_option("--drain-seconds", options->drain_seconds,
                   "At SIGTERM or Ctrl-C, how long running requests may go on; what they have may "
                   "take two seconds more to be sent")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  command
      ->add_option("--response-ttl-seconds", options->response_ttl_seconds,
                   "How long answers of /v1/responses are kept for previous_response_id; 0: not")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command
      ->add_option("--response-store-mib", options->response_store_mib,
                   "Memory for those answers in MiB; the one longest not used goes first; 0: none "
                   "is kept")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_flag("--example", options->example,
                    "Once it serves, print a request to paste into another terminal");
  CLI::Option* const keys =
      command
          ->add_option(
              "--api-key", options->server.api_keys,
              "A key that who asks must have (Authorization: Bearer KEY, or x-api-key: KEY); "
              "/health, /metrics and /openapi.json stay open")
          ->type_name("KEY");
  command->add_option("--api-key-file", options->api_key_file, "A file of such keys, one a line")
      ->type_name("FILE");
  command
      ->add_option("--cors-origin", options->server.cors_origins,
                   "Pages of this origin (https://host:port; *: all) may read the answers")
      ->type_name("ORIGIN");
  command
      ->add_option("--trace", options->trace,
                   "Write what the engine does, step by step and for each request, to this file "
                   "(for ui.perfetto.dev)")
      ->type_name("FILE");
  auto config = std::make_shared<std::string>();
  command->add_option("--config", *config, "A TOML file with flags: context = 4096")
      ->envname("LOCKSTEP_CONFIG")
      ->check(CLI::ExistingFile)
      ->configurable(false);
  auto print = std::make_shared<bool>(false);
  command->add_flag("--print-config", *print, "Show each setting and where it comes from, and end")
      ->configurable(false);
  command->footer(
      "Each setting is taken from its flag, else from the environment (LOCKSTEP_MAX_ROWS for "
      "--max-rows), else from the file of --config, else its default.");
  auto settings = std::make_shared<Settings>(command);
  settings->Hide(keys);
  command->callback([options, exit_code, config, print, settings] {
    settings->Resolve(*config);
    if (*print) {
      std::fputs(settings->Print().c_str(), stdout);
      return;
    }
    settings->CheckRequired();
    const Status status = Serve(*options);
    if (!status.ok()) *exit_code = ReportFailure(status);
  });
}

}  // namespace lockstep
