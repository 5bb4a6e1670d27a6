// Session: one client connection from its first request to its last: reads a request, has the
// endpoint answer it, sends the answer, and so on. All on the socket's strand; endpoints that
// tokenise run on the workers.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>

#include "server/client_socket.h"
#include "server/generation_run.h"
#include "server/request_reader.h"
#include "server/server_state.h"

namespace lockstep {

// Registers the connection with `state` and serves it. `socket` must run on a strand. With too many
// connections open, it is told so and closed.
void StartSession(boost::asio::ip::tcp::socket socket, ServerState& state);

class Session {
 public:
  Session(std::shared_ptr<ClientSocket> client, ServerState& state)
      : client_(std::move(client)), state_(state) {}

  boost::asio::awaitable<void> Serve();
  // Says that there are too many connections, and nothing else.
  boost::asio::awaitable<void> Refuse();

 private:
  struct Work;

  // Each returns whether the connection may serve another request.
  boost::asio::awaitable<bool> ServeOne();
  boost::asio::awaitable<bool> Answer(HttpRequest& request);
  boost::asio::awaitable<bool> AnswerWhole(GenerationRun& run, const HttpRequest& request);
  boost::asio::awaitable<bool> AnswerStream(GenerationRun& run, const HttpRequest& request);
  // A write of an answer that began at `begin` and is over now.
  void TraceWrite(const char* name, RequestId id, TraceSpan::TimePoint begin) const;
  boost::asio::awaitable<bool> Send(const ApiReply& reply, const HttpRequest& request);
  // Runs the endpoint, on a worker when it is heavy.
  boost::asio::awaitable<std::shared_ptr<Work>> Run(HttpRequest& request);
  // Finds out whether a client that sends no more still listens (ClientSocket::TakeProbe).
  // REQUIRES: no byte of the answer is out.
  boost::asio::awaitable<void> Probe(const HttpRequest& request);
  bool KeepAlive(const HttpRequest& request) const;
  static void TellReady(const std::shared_ptr<ClientSocket>& client,
                        const std::shared_ptr<Work>& work);

  std::shared_ptr<ClientSocket> client_;
  ServerState& state_;
  GenerationRun* running_ = nullptr;  // what to cancel when the client goes
  bool preparing_ = false;            // while it is not known whether there is something to cancel
};

}  // namespace lockstep
