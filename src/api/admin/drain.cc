#include "api/admin/drain.h"

namespace lockstep {
namespace {

ApiReply State(const ApiContext& context) {
  Json body;
  body["status"] = context.model == nullptr ? "loading"
                   : !context.drain_asked() ? "serving"
                   : context.answering > 0  ? "draining"
                                            : "drained";
  body["answering"] = context.answering;
  EngineStats stats;
  if (context.model != nullptr) stats = context.model->engine->stats();
  body["running"] = stats.running;
  body["waiting"] = stats.waiting;
  return JsonReply(body);
}

}  // namespace

ApiResult HandleDrain(const ApiContext& context, const ApiCall&) {
  if (context.drained != nullptr) *context.drained = true;
  return State(context);
}

ApiResult HandleDrainState(const ApiContext& context, const ApiCall&) { return State(context); }

}  // namespace lockstep
