#include "api/endpoint.h"

#include "api/error_map.h"

namespace lockstep {

ApiReply JsonReply(const Json& body) {
  ApiReply reply;
  reply.body = DumpJson(body);
  return reply;
}

ApiReply ErrorReply(const Status& status) {
  const HttpError error = ToHttpError(status);
  ApiReply reply = JsonReply(error.body);
  reply.status = error.status;
  if (error.retry_after_seconds > 0) {
    reply.headers.emplace_back("Retry-After", std::to_string(error.retry_after_seconds));
  }
  if (reply.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

std::string ErrorEvent(const Status& status) {
  std::string event;
  AppendEvent(ToHttpError(status).body, &event);
  return event;
}

void AppendEvent(const Json& data, std::string* out) {
  *out += "data: ";
  *out += DumpJson(data);
  *out += "\n\n";
}

Status CheckClient(const std::atomic<bool>* client_gone) {
  if (client_gone == nullptr || !*client_gone) return OkStatus();
  return Cancelled("the client has left");
}

Result<std::shared_ptr<const ServedModel>> ReadyModel(const ApiContext& context) {
  if (context.draining) return Unavailable("the server is shutting down");
  if (context.drain_asked()) return Unavailable("the server is draining: it takes no new requests");
  if (context.model == nullptr) return Unavailable("the model is still loading");
  if (!context.model->engine->healthy()) return Unavailable("the engine has stopped");
  return context.model;
}

}  // namespace lockstep
