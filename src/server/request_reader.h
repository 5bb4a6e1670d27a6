// Reads one HTTP/1.1 request from a client and checks what HTTP itself asks for: sizes, times,
// framing, path, method, content type. The one unit that knows the HTTP parser.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/endpoint.h"
#include "server/client_socket.h"
#include "server/router.h"
#include "server/server_state.h"

namespace lockstep {

// The bytes of a body, counted against the server's sum of bodies while they are held.
class BodyCharge {
 public:
  explicit BodyCharge(ServerState& state) : state_(state) {}
  ~BodyCharge() { state_.inflight_body_bytes -= bytes_; }
  BodyCharge(const BodyCharge&) = delete;
  BodyCharge& operator=(const BodyCharge&) = delete;
  // False: the sum would be too large.
  bool Grow(size_t bytes);

 private:
  ServerState& state_;
  size_t bytes_ = 0;
};

struct HttpRequest {
  explicit HttpRequest(ServerState& state) : charge(state) {}
  RouteMatch match;
  std::string body;
  std::string request_id;  // the client's x-request-id, or empty
  std::string owner;       // the API key that asks, or empty
  // Of every answer to it.
  std::vector<std::pair<std::string, std::string>> answer_headers;
  bool head = false;  // answer without the body
  bool keep_alive = false;
  bool http_1_0 = false;
  BodyCharge charge;
};

enum class ReadOutcome {
  kRequest,  // `request` is whole
  kReply,    // it is answered with `reply` already
  kClosed,   // nothing to answer
};

// REQUIRES: the first byte has come. Sets request->keep_alive to false when what follows on the
// connection cannot be read as a request.
boost::asio::awaitable<ReadOutcome> ReadRequest(ClientSocket& client, ServerState& state,
                                                HttpRequest* request, ApiReply* reply);

}  // namespace lockstep
