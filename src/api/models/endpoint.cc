#include "api/models/endpoint.h"

namespace lockstep {
namespace {

Json ModelJson(const ServedModel& model, std::string_view name) {
  Json json;
  json["id"] = name;
  json["object"] = "model";
  json["created"] = model.created;
  json["owned_by"] = "lockstep";
  json["max_model_len"] = model.max_context;
  return json;
}

}  // namespace

ApiResult HandleModels(const ApiContext& context, const ApiCall&) {
  const auto model = ReadyModel(context);
  if (!model.ok()) return ErrorReply(model.status());
  Json list;
  list["object"] = "list";
  list["data"] = Json::array({ModelJson(**model, (*model)->id)});
  for (const std::string& alias : (*model)->aliases) {
    list["data"].push_back(ModelJson(**model, alias));
  }
  return JsonReply(list);
}

ApiResult HandleModel(const ApiContext& context, const ApiCall& call) {
  const auto model = ReadyModel(context);
  if (!model.ok()) return ErrorReply(model.status());
  const Status known = CheckModelName(**model, call.rest);
  if (!known.ok()) return ErrorReply(known);
  return JsonReply(ModelJson(**model, call.rest));
}

}  // namespace lockstep
