#include "api/admin/cache_flush.h"

#include <chrono>

namespace lockstep {
namespace {

// A disk that takes longer is not one to wait for.
constexpr std::chrono::minutes kLongest{10};

}  // namespace

ApiResult HandleCacheFlush(const ApiContext& context, const ApiCall& call) {
  const auto model = ReadyModel(context);
  if (!model.ok()) return ErrorReply(model.status());
  Engine& engine = *(*model)->engine;
  const Status status =
      engine.FlushPrefixes(std::chrono::steady_clock::now() + kLongest, call.client_gone);
  if (!status.ok()) return ErrorReply(status);
  Json body;
  body["status"] = "ok";
  if (const auto store = engine.stats().prefix_store) {
    body["entries"] = store->entries;
    body["bytes"] = store->bytes;
  }
  return JsonReply(body);
}

}  // namespace lockstep
