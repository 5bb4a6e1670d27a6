#include "api/anthropic_messages/endpoint.h"

#include <utility>

#include "api/answer_plan.h"
#include "api/anthropic_messages/request.h"
#include "api/anthropic_messages/writer.h"
#include "api/error_map.h"
#include "api/or_error.h"
#include "api/prompt.h"

namespace lockstep {
namespace {

Result<RenderedPrompt> Render(const AnthropicRequest& request, const ServedModel& model,
                              const ApiCall& call) {
  return RenderPrompt(request.template_context, model, request.fields.request, {"messages"},
                      call.client_gone);
}

Result<GenerationJob> MakeJob(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  LOCKSTEP_ASSIGN_OR_RETURN(AnthropicRequest request,
                            ReadAnthropicRequest(call.body, *model, /*counts=*/false));
  LOCKSTEP_ASSIGN_OR_RETURN(RenderedPrompt prompt, Render(request, *model, call));
  LOCKSTEP_ASSIGN_OR_RETURN(const AnswerPlan plan,
                            PlanAnswer(*model, prompt.text, std::nullopt, request.tools));
  AnthropicAnswerOptions options;
  options.unique = call.unique;
  options.model = model->id;
  options.stream = request.fields.stream;
  options.input_tokens = static_cast<int32_t>(prompt.tokens.size());
  options.parser = plan.parser;
  request.fields.request.prompt = std::move(prompt.tokens);
  request.fields.request.stable_tokens = prompt.stable_tokens;
  ApplyPlan(plan, &request.fields.request);
  GenerationJob job;
  job.model = model;
  job.stream = request.fields.stream;
  job.requests.push_back(std::move(request.fields.request));
  job.writer = std::make_unique<AnthropicWriter>(std::move(options));
  return job;
}

Result<ApiReply> Count(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  LOCKSTEP_ASSIGN_OR_RETURN(const AnthropicRequest request,
                            ReadAnthropicRequest(call.body, *model, /*counts=*/true));
  LOCKSTEP_ASSIGN_OR_RETURN(const RenderedPrompt prompt, Render(request, *model, call));
  Json reply;
  reply["input_tokens"] = prompt.tokens.size();
  return JsonReply(reply);
}

const char* ErrorType(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return http_status >= 500 ? "api_error" : "invalid_request_error";
  }
}

Json ErrorJson(const Status& status) {
  Json error;
  error["type"] = "error";
  error["error"]["type"] = ErrorType(ToHttpError(status).status);
  error["error"]["message"] = status.message();
  return error;
}

}  // namespace

ApiResult HandleMessages(const ApiContext& context, const ApiCall& call) {
  return OrError(MakeJob(context, call), AnthropicErrorReply);
}

ApiResult HandleCountTokens(const ApiContext& context, const ApiCall& call) {
  return OrError(Count(context, call), AnthropicErrorReply);
}

ApiReply AnthropicErrorReply(const Status& status) {
  ApiReply reply = ErrorReply(status);
  reply.body = DumpJson(ErrorJson(status));
  return reply;
}

std::string AnthropicErrorEvent(const Status& status) {
  std::string event = "event: error\n";
  AppendEvent(ErrorJson(status), &event);
  return event;
}

}  // namespace lockstep
