#include "api/openai_responses/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "api/answer_plan.h"
#include "api/error_map.h"
#include "api/excerpt.h"
#include "api/openai_responses/request.h"
#include "api/openai_responses/writer.h"
#include "api/or_error.h"
#include "api/prompt.h"
#include "api/query.h"

namespace lockstep {
namespace {

constexpr int kMaxListed = 100;

void Replace(std::string* text, std::string_view from, std::string_view to) {
  for (size_t at = text->find(from); at != text->npos; at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

// The shared parts speak of the fields as chat completions names them.
Status InOwnWords(const Status& status) {
  std::string message = status.message();
  std::string param = status.param() == "messages" ? "input" : status.param();
  Replace(&message, "'messages'", "'input'");
  for (std::string* text : {&message, &param}) Replace(text, "].function.", "].");
  return Status(status.code(), message, param);
}

Result<GenerationJob> MakeJob(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  LOCKSTEP_ASSIGN_OR_RETURN(ResponsesRequest request, ReadResponsesRequest(call, *model));
  GenerationRequest& generation = request.fields.request;
  LOCKSTEP_ASSIGN_OR_RETURN(RenderedPrompt prompt,
                            RenderPrompt(request.template_context, *model, generation,
                                         {"input", "max_output_tokens"}, call.client_gone));
  LOCKSTEP_ASSIGN_OR_RETURN(const AnswerPlan plan,
                            PlanAnswer(*model, prompt.text, request.structured, request.tools));
  generation.prompt = std::move(prompt.tokens);
  generation.stable_tokens = prompt.stable_tokens;
  ApplyPlan(plan, &generation);
  ResponsesAnswerOptions options;
  options.unique = call.unique;
  options.head = std::move(request.head);
  options.stream = request.fields.stream;
  options.parser = plan.parser;
  if (request.store) {
    options.store = model->responses;
    options.owner = call.owner;
    options.items = DumpJson(request.items);
  }
  GenerationJob job;
  job.model = model;
  job.stream = request.fields.stream;
  job.requests.push_back(std::move(generation));
  job.writer = std::make_unique<ResponsesWriter>(std::move(options));
  return job;
}

Result<std::shared_ptr<const StoredResponse>> FindStored(const ApiContext& context,
                                                         const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  auto stored =
      model->responses == nullptr ? nullptr : model->responses->Find(call.rest, call.owner);
  if (stored == nullptr) return NoSuchResponse(call.rest, "response_id");
  return stored;
}

Result<ApiReply> Get(const ApiContext& context, const ApiCall& call) {
  const std::string stream = QueryValue(call.query, "stream").value_or("false");
  if (stream != "false") {
    return Unimplemented("'stream': a response that is over is not streamed", "stream");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto stored, FindStored(context, call));
  ApiReply reply;
  reply.body = stored->response;
  return reply;
}

Result<ApiReply> Delete(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  if (model->responses == nullptr || !model->responses->Erase(call.rest, call.owner)) {
    return NoSuchResponse(call.rest, "response_id");
  }
  Json body;
  body["id"] = call.rest;
  body["object"] = "response";
  body["deleted"] = true;
  return JsonReply(body);
}

Result<int> ReadLimit(const ApiCall& call) {
  const std::string text = QueryValue(call.query, "limit").value_or("20");
  int limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error == std::errc() && end == text.data() + text.size() && limit >= 1 &&
      limit <= kMaxListed) {
    return limit;
  }
  return InvalidArgument(fmt::format("'limit' must be between 1 and {}", kMaxListed), "limit");
}

Result<ApiReply> Items(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int limit, ReadLimit(call));
  const std::string order = QueryValue(call.query, "order").value_or("desc");
  if (order != "asc" && order != "desc") {
    return InvalidArgument("'order' is asc or desc", "order");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto stored, FindStored(context, call));
  Json items = Json::parse(stored->items);
  if (order == "desc") std::reverse(items.begin(), items.end());
  size_t begin = 0;
  if (const auto after = QueryValue(call.query, "after")) {
    while (begin < items.size() && items[begin]["id"] != *after) ++begin;
    if (begin == items.size()) {
      return InvalidArgument(
          fmt::format("'after' is \"{}\", which is no item of the response", Excerpt(*after)),
          "after");
    }
    ++begin;
  }
  const size_t end = std::min(begin + static_cast<size_t>(limit), items.size());
  Json list;
  list["object"] = "list";
  list["data"] = Json::array();
  for (size_t i = begin; i < end; ++i) list["data"].push_back(items[i]);
  list["first_id"] = begin < end ? items[begin]["id"] : Json("");
  list["last_id"] = begin < end ? items[end - 1]["id"] : Json("");
  list["has_more"] = end < items.size();
  return JsonReply(list);
}

}  // namespace

ApiResult HandleResponses(const ApiContext& context, const ApiCall& call) {
  Result<GenerationJob> job = MakeJob(context, call);
  if (!job.ok()) return ErrorReply(InOwnWords(job.status()));
  return std::move(job).value();
}

ApiResult HandleResponse(const ApiContext& context, const ApiCall& call) {
  return OrError(Get(context, call));
}

ApiResult HandleResponseDelete(const ApiContext& context, const ApiCall& call) {
  return OrError(Delete(context, call));
}

ApiResult HandleResponseItems(const ApiContext& context, const ApiCall& call) {
  return OrError(Items(context, call));
}

std::string ResponsesErrorEvent(const Status& status) {
  return fmt::format(": {}\n\n", DumpJson(ToHttpError(status).body));
}

}  // namespace lockstep
