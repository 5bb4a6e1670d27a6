#include "api/openai_chat/endpoint.h"

#include <utility>

#include "api/openai_chat/request.h"
#include "api/openai_chat/writer.h"
#include "api/prompt.h"

namespace lockstep {
namespace {

Result<std::vector<TokenId>> RenderPrompt(const ServedModel& model, const ChatRequest& chat,
                                          const ApiCall& call) {
  if (model.chat_template == nullptr) {
    return InvalidArgument(
        "this model has no chat template; use /v1/completions with a finished prompt", "messages");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckClient(call.client_gone));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            model.chat_template->Render(DumpJson(chat.template_context)));
  // The template writes BOS itself: adding the tokenizer's would make two.
  EncodeOptions options;
  options.add_special = false;
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<TokenId> prompt,
                            EncodePrompt(text, options, model, chat.fields.request,
                                         {"messages", chat.max_tokens_name}, call.client_gone));
  if (prompt.empty()) {
    return InvalidArgument("the prompt that 'messages' render to has no tokens", "messages");
  }
  return prompt;
}

Result<GenerationJob> MakeJob(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  LOCKSTEP_ASSIGN_OR_RETURN(ChatRequest chat, ReadChatRequest(call.body, *model));
  LOCKSTEP_ASSIGN_OR_RETURN(chat.fields.request.prompt, RenderPrompt(*model, chat, call));
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
  job.writer = std::make_unique<ChatWriter>(std::move(options));
  return job;
}

}  // namespace

ApiResult HandleChatCompletions(const ApiContext& context, const ApiCall& call) {
  Result<GenerationJob> job = MakeJob(context, call);
  if (!job.ok()) return ErrorReply(job.status());
  return std::move(job).value();
}

}  // namespace lockstep
