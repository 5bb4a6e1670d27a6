#include "api/openapi/endpoint.h"

#include <string>

#include "api/openapi/documents.h"

namespace lockstep {
namespace {

// What any request may be answered with, and what only one with a body may.
constexpr const char* kAlways[] = {"400", "401", "404", "408", "431", "500", "501", "503"};
constexpr const char* kWithBody[] = {"413", "415", "417", "429", "504"};

// Adds the error `status`, in the shape of this operation's API.
void AddError(const char* status, const Json& shared, const std::string& schema, Json* operation) {
  Json& responses = (*operation)["responses"];
  if (responses.contains(status)) return;
  if (schema.empty()) {
    responses[status]["$ref"] = std::string("#/components/responses/") + status;
    return;
  }
  Json own = shared[status];
  own["content"]["application/json"]["schema"]["$ref"] = "#/components/schemas/" + schema;
  responses[status] = std::move(own);
}

}  // namespace

Json OpenApiDocument(std::string_view version) {
  Json document = Json::object();
  for (const std::string_view part : OpenApiDocuments()) {
    document.merge_patch(Json::parse(part));
  }
  document["info"]["version"] = version;
  const Json shared = document["components"]["responses"];
  for (auto& path : document["paths"].items()) {
    for (auto& method : path.value().items()) {
      Json& operation = method.value();
      const std::string schema = operation.value("x-error", "");
      operation.erase("x-error");
      for (const char* status : kAlways) AddError(status, shared, schema, &operation);
      if (method.key() != "post") continue;
      for (const char* status : kWithBody) AddError(status, shared, schema, &operation);
    }
  }
  return document;
}

ApiResult HandleOpenApi(const ApiContext& context, const ApiCall&) {
  return JsonReply(OpenApiDocument(context.model != nullptr ? context.model->version : ""));
}

}  // namespace lockstep
