#include <pthread.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <csignal>
#include <ctime>
#include <memory>
#include <thread>

#include "apps/cli/commands.h"
#include "apps/cli/report.h"
#include "apps/serving/loaded_model.h"
#include "apps/serving/version.h"
#include "base/log.h"
#include "server/server.h"

namespace lockstep {
namespace {

struct ServeOptions {
  ModelOptions model;
  ServerOptions server;
  std::vector<std::string> aliases;
  bool any_model_name = false;
  int32_t drain_seconds = 30;
};

// The signals that end the server, taken by one thread that waits for them. Constructed before any
// other thread, so that all inherit the mask.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    for (int signal : {SIGINT, SIGTERM}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  void Wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
  }
  // From now on a further signal ends the process at once.
  void EndAtNext() const {
    std::thread([set = set_] {
      int signal = 0;
      sigwait(&set, &signal);
      _exit(128 + signal);
    }).detach();
  }

 private:
  sigset_t set_;
};

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
  return served;
}

Status Serve(const ServeOptions& options) {
  const EndSignals signals;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Bind(options.server));
  server->Start();
  std::atomic<bool> dead{false};
  // A dead engine has answered every request with an error; the process ends so that it is
  // restarted.
  const auto on_fatal = [&](const Status& status) {
    LogError("the engine cannot go on: {}", status.ToString());
    dead = true;
    kill(getpid(), SIGTERM);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedModel loaded, LoadForServing(options.model, on_fatal));
  server->SetModel(Describe(loaded, options));
  LogInfo("serving {} on http://{}:{}", loaded.id, options.server.host, server->port());
  signals.Wait();

  signals.EndAtNext();
  LogInfo("ending: running requests have {} seconds", options.drain_seconds);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(dead ? 0 : options.drain_seconds);
  server->Stop(deadline);
  loaded.engine->Drain(deadline);
  return dead ? Internal("the engine died") : OkStatus();
}

}  // namespace

void AddServeCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app->add_subcommand("serve", "Serve a model over HTTP");
  AddModelOptions(command, /*positional=*/false, &options->model);
  AddCapacityOptions(command, &options->model);
  command->add_option("--host", options->server.host, "The address to listen on")
      ->envname("LOCKSTEP_HOST")
      ->capture_default_str();
  command->add_option("-p,--port", options->server.port, "The port to listen on; 0: any free one")
      ->envname("LOCKSTEP_PORT")
      ->capture_default_str();
  command->add_option("--alias", options->aliases, "Another name that requests may call the model");
  command->add_flag("--any-model-name", options->any_model_name,
                    "Answer requests whatever model they name");
  command
      ->add_option("--drain-seconds", options->drain_seconds,
                   "At SIGTERM or Ctrl-C, how long running requests may go on")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  command->set_config("--config", "", "Read flags from a TOML file");
  command->callback([options, exit_code] {
    const Status status = Serve(*options);
    if (!status.ok()) *exit_code = ReportFailure(status);
  });
}

}  // namespace lockstep
