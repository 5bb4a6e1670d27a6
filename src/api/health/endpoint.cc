#include "api/health/endpoint.h"

namespace lockstep {

ApiResult HandleHealth(const ApiContext& context, const ApiCall&) {
  const auto model = ReadyModel(context);
  Json body;
  body["status"] = "ok";
  if (model.ok()) return JsonReply(body);
  body["status"] = context.draining           ? "shutting down"
                   : context.drain_asked()    ? "draining"
                   : context.model == nullptr ? "loading"
                                              : "engine stopped";
  ApiReply reply = JsonReply(body);
  reply.status = 503;
  return reply;
}

ApiResult HandleVersion(const ApiContext& context, const ApiCall&) {
  const auto model = ReadyModel(context);
  if (!model.ok()) return ErrorReply(model.status());
  Json body;
  body["version"] = (*model)->version;
  return JsonReply(body);
}

}  // namespace lockstep
