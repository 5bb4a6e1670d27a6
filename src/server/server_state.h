// What the connections of one server share. Thread-safe, but for the options and executors, which
// are fixed before the first connection. Outlives every connection: whoever owns it waits.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "api/endpoint.h"
#include "server/options.h"
#include "server/router.h"
#include "server/work_queue.h"

namespace lockstep {

class ClientSocket;

struct ServerState {
  ServerState(ServerOptions server_options, std::span<const Route> routes)
      : options(std::move(server_options)),
        router(routes),
        io(options.io_threads),
        workers(options.worker_threads) {}

  const ServerOptions options;
  const Router router;
  HttpCounters http;
  std::atomic<bool> draining{false};  // the process is ending
  std::atomic<bool> drained{false};   // ApiContext::drained
  std::atomic<size_t> inflight_body_bytes{0};

  ApiContext Context() {
    const std::lock_guard lock(mutex);
    return {model, draining.load(), &http, &drained, answering};
  }

  // Counts an answer of a model, from its request to its last byte: what a shutdown waits for.
  class Answering {
   public:
    explicit Answering(ServerState& state) : state_(state) {
      const std::lock_guard lock(state_.mutex);
      ++state_.answering;
    }
    ~Answering() {
      const std::lock_guard lock(state_.mutex);
      --state_.answering;
      state_.client_gone.notify_all();
    }
    Answering(const Answering&) = delete;
    Answering& operator=(const Answering&) = delete;

   private:
    ServerState& state_;
  };

  std::mutex mutex;
  std::condition_variable client_gone;                                     // or an answer ended
  int64_t answering = 0;                                                   // by mutex
  std::shared_ptr<const ServedModel> model;                                // by mutex
  std::unordered_map<ClientSocket*, std::weak_ptr<ClientSocket>> clients;  // by mutex

  // Last, so that they go first: what they hold unregisters itself above.
  boost::asio::io_context io;
  WorkQueue workers;
};

}  // namespace lockstep
