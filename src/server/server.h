// The HTTP/1.1 server: connections, limits, time-outs, and the way between an endpoint's job and
// the engine. What the endpoints are and say is api/'s; what the engine does is engine/'s.
//
// Life: Bind (a port in use fails here, before a model is loaded) -> Start (answers /health with
// 503) -> SetModel -> Stop. Thread-safe, but for the order of these four.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "api/served_model.h"
#include "base/status.h"
#include "server/options.h"

namespace lockstep {

class Server {
 public:
  // Binds and listens. Errors: kFailedPrecondition naming the port that is in use;
  // kInvalidArgument for a host that is no address of this machine; kIoError.
  static Result<std::unique_ptr<Server>> Bind(const ServerOptions& options);
  ~Server();  // stops at once

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Starts the threads of the server and returns.
  void Start();

  // From now on requests are served. The model's engine must live until Stop has returned.
  void SetModel(ServedModel model);

  // Answers new requests with 503 (so that /health says what is going on), lets those that run end
  // until `deadline`, then accepts nothing more and cancels what is left; returns when no
  // connection is left. Idempotent.
  void Stop(std::chrono::steady_clock::time_point deadline);

  uint16_t port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
