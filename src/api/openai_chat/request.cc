#include "api/openai_chat/request.h"

#include <string>
#include <utility>

#include "api/fields.h"
#include "api/openai_chat/messages.h"
#include "api/template_context.h"

namespace lockstep {
namespace {

constexpr UnsupportedField kUnsupported[] = {
    {"functions", "[]"},
    {"function_call", "\"none\""},
    {"modalities", "[\"text\"]"},
    {"audio", nullptr},
    {"prediction", nullptr},
    {"web_search_options", nullptr},
    {"verbosity", "\"medium\""},
    {"best_of", "1"},
    {"echo", "false"},
    {"suffix", "\"\""},
    {"continue_final_message", "false"},
    {"add_special_tokens", "false"},
    {"chat_template", nullptr},
    {"documents", nullptr},
    {"mm_processor_kwargs", nullptr},
};

Status ReadLogprobs(const Json& body, int32_t* top_logprobs) {
  bool logprobs = false;
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(body, "logprobs", &logprobs));
  int32_t top = 0;
  LOCKSTEP_RETURN_IF_ERROR(ReadInt32(body, "top_logprobs", 0, kMaxTopLogprobs, &top));
  if (top > 0 && !logprobs) {
    return InvalidArgument("'top_logprobs' is only allowed when 'logprobs' is true",
                           "top_logprobs");
  }
  if (logprobs) *top_logprobs = top;
  return OkStatus();
}

// Accepted, of no effect on the answer, but still of the API's types.
Status CheckIgnored(const Json& body) {
  bool flag = false;
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(body, "store", &flag));
  std::string text;
  for (const char* name : {"service_tier", "safety_identifier", "prompt_cache_key"}) {
    LOCKSTEP_RETURN_IF_ERROR(ReadString(body, name, &text));
  }
  const Json* metadata = FindField(body, "metadata");
  if (metadata != nullptr && !metadata->is_object()) {
    return WrongType("metadata", "an object", *metadata);
  }
  return OkStatus();
}

}  // namespace

Result<ChatRequest> ReadChatRequest(std::string_view body, const ServedModel& model) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(body));
  ChatRequest request;
  LOCKSTEP_ASSIGN_OR_RETURN(request.fields, ReadGenerationFields(json, model));
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnsupported(json, kUnsupported));
  LOCKSTEP_RETURN_IF_ERROR(CheckIgnored(json));
  GenerationRequest& generation = request.fields.request;
  LOCKSTEP_RETURN_IF_ERROR(ReadMaxTokens(json, "max_completion_tokens", 1, &generation));
  LOCKSTEP_RETURN_IF_ERROR(ReadMaxTokens(json, "max_tokens", 1, &generation));
  if (FindField(json, "max_tokens") == nullptr) request.max_tokens_name = "max_completion_tokens";
  LOCKSTEP_ASSIGN_OR_RETURN(request.structured, ReadStructuredOutput(json));
  LOCKSTEP_RETURN_IF_ERROR(ReadLogprobs(json, &request.top_logprobs));
  LOCKSTEP_ASSIGN_OR_RETURN(request.tools, ReadToolUse(json));
  LOCKSTEP_ASSIGN_OR_RETURN(Json messages, ReadMessages(json));
  LOCKSTEP_ASSIGN_OR_RETURN(request.template_context,
                            ReadTemplateContext(json, std::move(messages), request.tools));
  return request;
}

}  // namespace lockstep
