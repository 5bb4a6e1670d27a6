#include "api/tokenize/endpoint.h"

#include <utility>

#include "api/fields.h"
#include "api/openai_chat/request.h"
#include "api/or_error.h"
#include "api/prompt.h"

namespace lockstep {
namespace {

Result<Json> ReadBody(const ApiCall& call, const ServedModel& model) {
  LOCKSTEP_ASSIGN_OR_RETURN(Json body, ParseJsonObject(call.body));
  if (FindField(body, "model") != nullptr) {
    std::string name;
    LOCKSTEP_RETURN_IF_ERROR(ReadString(body, "model", &name));
    LOCKSTEP_RETURN_IF_ERROR(CheckModelName(model, name));
  }
  return body;
}

// The text that the body's conversation becomes: what chat completions would tokenise.
Result<std::string> RenderBody(const ApiCall& call, const ServedModel& model) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChatRequest chat, ReadChatRequest(call.body, model));
  LOCKSTEP_RETURN_IF_ERROR(CheckClient(call.client_gone));
  return RenderText(chat.template_context, model);
}

Result<ApiReply> Tokenize(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  LOCKSTEP_ASSIGN_OR_RETURN(const Json body, ReadBody(call, *model));
  std::string prompt;
  EncodeOptions options;
  if (FindField(body, "messages") != nullptr) {
    if (FindField(body, "prompt") != nullptr) {
      return InvalidArgument("'prompt' and 'messages' cannot both be given", "prompt");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(prompt, RenderBody(call, *model));
    options.add_special = false;
  } else {
    if (FindField(body, "prompt") == nullptr) return Missing("prompt");
    LOCKSTEP_RETURN_IF_ERROR(ReadString(body, "prompt", &prompt));
    LOCKSTEP_RETURN_IF_ERROR(ReadBool(body, "add_special_tokens", &options.add_special));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                            model->tokenizer->Encode(prompt, options));
  Json reply;
  reply["count"] = tokens.size();
  reply["max_model_len"] = model->max_context;
  reply["tokens"] = tokens;
  return JsonReply(reply);
}

Result<ApiReply> Detokenize(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  LOCKSTEP_ASSIGN_OR_RETURN(const Json body, ReadBody(call, *model));
  const Json* list = FindField(body, "tokens");
  if (list == nullptr) return Missing("tokens");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                            AsTokens(*list, "tokens", model->vocab_size));
  DecodeOptions options;
  options.skip_special = false;
  Json reply;
  reply["prompt"] = model->tokenizer->Decode(tokens, options);
  return JsonReply(reply);
}

Result<ApiReply> ApplyTemplate(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  Json reply;
  LOCKSTEP_ASSIGN_OR_RETURN(reply["prompt"], RenderBody(call, *model));
  return JsonReply(reply);
}

}  // namespace

ApiResult HandleTokenize(const ApiContext& context, const ApiCall& call) {
  return OrError(Tokenize(context, call));
}

ApiResult HandleApplyTemplate(const ApiContext& context, const ApiCall& call) {
  return OrError(ApplyTemplate(context, call));
}

ApiResult HandleDetokenize(const ApiContext& context, const ApiCall& call) {
  return OrError(Detokenize(context, call));
}

}  // namespace lockstep
