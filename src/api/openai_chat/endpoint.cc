#include "api/openai_chat/endpoint.h"

#include <utility>

#include "api/answer_plan.h"
#include "api/openai_chat/request.h"
#include "api/openai_chat/writer.h"
#include "api/or_error.h"
#include "api/prompt.h"

namespace lockstep {
namespace {

Result<GenerationJob> MakeJob(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  LOCKSTEP_ASSIGN_OR_RETURN(ChatRequest chat, ReadChatRequest(call.body, *model));
  LOCKSTEP_ASSIGN_OR_RETURN(RenderedPrompt prompt,
                            RenderPrompt(chat.template_context, *model, chat.fields.request,
                                         {"messages", chat.max_tokens_name}, call.client_gone));
  LOCKSTEP_ASSIGN_OR_RETURN(const AnswerPlan plan,
                            PlanAnswer(*model, prompt.text, chat.structured, chat.tools));
  chat.fields.request.prompt = std::move(prompt.tokens);
  chat.fields.request.stable_tokens = prompt.stable_tokens;
  ApplyPlan(plan, &chat.fields.request);
  GenerationJob job;
  job.model = model;
  job.stream = chat.fields.stream;
  for (int32_t i = 0; i < chat.fields.n; ++i) {
    GenerationRequest request = chat.fields.request;
    request.sampling.logprobs = chat.top_logprobs;
    request.sampling.stream = static_cast<uint64_t>(i);
    job.requests.push_back(std::move(request));
  }
  ChatAnswerOptions options;
  options.head = {"chatcmpl-" + call.unique, "", call.created, model->id, model->fingerprint};
  options.choices = chat.fields.n;
  options.stream = job.stream;
  options.include_usage = chat.fields.include_usage;
  options.top_logprobs = chat.top_logprobs;
  options.tokenizer = model->tokenizer;
  options.parser = plan.parser;
  job.writer = std::make_unique<ChatWriter>(std::move(options));
  return job;
}

}  // namespace

ApiResult HandleChatCompletions(const ApiContext& context, const ApiCall& call) {
  return OrError(MakeJob(context, call));
}

}  // namespace lockstep
