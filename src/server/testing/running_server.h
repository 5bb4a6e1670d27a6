// A server on a free port of the loopback interface, and waiting that needs no sleep to be right.
// For tests of server/ alone.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "server/server.h"

namespace lockstep::testing {

struct RunningServer {
  explicit RunningServer(ServerOptions options = {}) {
    options.port = 0;
    auto bound = Server::Bind(options);
    EXPECT_TRUE(bound.ok()) << bound.status().ToString();
    server = std::move(bound).value();
    server->Start();
  }
  RunningServer(const ServedModel& model, ServerOptions options = {})
      : RunningServer(std::move(options)) {
    server->SetModel(model);
  }
  uint16_t port() const { return server->port(); }

  std::unique_ptr<Server> server;
};

// Polls until `what` holds; false when it never does.
template <typename Predicate>
bool Eventually(Predicate what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!what()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace lockstep::testing
