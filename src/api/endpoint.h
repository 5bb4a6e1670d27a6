// What an endpoint is to the server: a function from a request's bytes to a reply, or to a
// generation that the server submits, feeds to the endpoint's writer and sends. No HTTP library
// here; the server owns connections, sinks and time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/json.h"
#include "api/served_model.h"
#include "base/status.h"
#include "engine/request.h"

namespace lockstep {

// Counted by the server, shown by /metrics. Thread-safe.
struct HttpCounters {
  std::atomic<int64_t> connections_open{0};
  std::atomic<uint64_t> connections{0};
  std::atomic<uint64_t> disconnects{0};  // clients that left before their answer ended
  std::atomic<uint64_t> responses[6]{};  // by the first digit of the status
};

// What every call may look at. Borrowed for the call.
struct ApiContext {
  std::shared_ptr<const ServedModel> model;  // null while loading
  bool draining = false;                     // the process is ending
  const HttpCounters* http = nullptr;
  // Set by /admin/drain: the process goes on, but takes no new requests. Null: it cannot be asked.
  std::atomic<bool>* drained = nullptr;
  int64_t answering = 0;  // requests to a model whose answers are not sent to their ends

  bool drain_asked() const { return drained != nullptr && *drained; }
};

struct ApiCall {
  std::string_view body;
  std::string_view rest;  // what the route's "*" matched, percent-decoded
  std::string unique;     // a token for the answer's id, new for each request
  int64_t created = 0;    // Unix seconds
  const std::atomic<bool>* client_gone = nullptr;  // true: nobody waits for the answer any more
  std::string_view query = {};                     // of the target, after "?" (query.h)
  std::string_view owner = {};  // the API key that asks; empty where none is needed
};

struct ApiReply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// Turns events into the answer's bytes. Used by one thread at a time.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  // Streams only: what goes out with the headers.
  virtual std::string Begin() = 0;
  // Takes an event of requests[index]; a stream's bytes are appended to `out`. An error means that
  // the request failed: the answer is over.
  virtual Status Take(size_t index, GenerationEvent event, std::string* out) = 0;
  // After every request's last event: the stream's last bytes, or the whole body.
  virtual std::string End() = 0;
};

struct GenerationJob {
  std::shared_ptr<const ServedModel> model;
  std::vector<GenerationRequest> requests;  // their sinks are the server's to set
  std::unique_ptr<AnswerWriter> writer;
  bool stream = false;
};

using ApiResult = std::variant<ApiReply, GenerationJob>;

ApiReply ErrorReply(const Status& status);
// A server-sent event that carries `status` as OpenAI's error object.
std::string ErrorEvent(const Status& status);

struct Route {
  std::string_view method;
  std::string_view path;  // a "*" matches whatever is not empty
  ApiResult (*handler)(const ApiContext&, const ApiCall&);
  bool heavy = false;  // run on a worker thread: it tokenises
  // How this API says that a request failed, before and within a stream.
  ApiReply (*error)(const Status&) = ErrorReply;
  std::string (*error_event)(const Status&) = ErrorEvent;
  bool open = false;  // asked by probers and gateways, which have no key
};

ApiReply JsonReply(const Json& body);
// "data: <json>\n\n", appended.
void AppendEvent(const Json& data, std::string* out);

// Errors: kCancelled when the client has left; asked before work that takes long.
Status CheckClient(const std::atomic<bool>* client_gone);

// The model of the context, for a new request. Errors: kUnavailable while loading or draining.
Result<std::shared_ptr<const ServedModel>> ReadyModel(const ApiContext& context);

}  // namespace lockstep
