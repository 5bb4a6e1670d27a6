#include "api/anthropic_messages/request.h"

#include <string>
#include <utility>

#include "api/anthropic_messages/messages.h"
#include "api/fields.h"

namespace lockstep {
namespace {

constexpr UnsupportedField kUnsupported[] = {
    {"n", "1"},
    {"stop", nullptr},
    {"stream_options", nullptr},
    {"container", nullptr},
    {"mcp_servers", "[]"},
    {"context_management", nullptr},
    {"output_format", nullptr},
    {"output_config", nullptr},
};

// Whether the model is asked to reason first.
Result<bool> ReadThinking(const Json& body) {
  const Json* thinking = FindField(body, "thinking");
  if (thinking == nullptr) return false;
  if (!thinking->is_object()) return WrongType("thinking", "an object", *thinking);
  const Json* type = FindField(*thinking, "type");
  if (type == nullptr) return Missing("thinking.type");
  if (*type == "disabled") return false;
  if (*type != "enabled" && *type != "adaptive") {
    return InvalidArgument("'thinking.type' is enabled, adaptive or disabled", "thinking.type");
  }
  // Of no effect: how much it reasons is the model's own affair.
  int32_t budget = 0;
  LOCKSTEP_RETURN_IF_ERROR(ReadInt32(*thinking, "budget_tokens", 1, INT32_MAX, &budget));
  return true;
}

Status CheckIgnored(const Json& body) {
  std::string text;
  LOCKSTEP_RETURN_IF_ERROR(ReadString(body, "service_tier", &text));
  const Json* metadata = FindField(body, "metadata");
  if (metadata != nullptr && !metadata->is_object()) {
    return WrongType("metadata", "an object", *metadata);
  }
  return OkStatus();
}

}  // namespace

Result<AnthropicRequest> ReadAnthropicRequest(std::string_view body, const ServedModel& model,
                                              bool counts) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(body));
  AnthropicRequest request;
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnsupported(json, kUnsupported));
  LOCKSTEP_ASSIGN_OR_RETURN(request.fields, ReadGenerationFields(json, model));
  GenerationRequest& generation = request.fields.request;
  LOCKSTEP_RETURN_IF_ERROR(ReadStop(json, "stop_sequences", &generation.stop));
  LOCKSTEP_RETURN_IF_ERROR(CheckIgnored(json));
  if (!counts) {
    if (FindField(json, "max_tokens") == nullptr) return Missing("max_tokens");
    LOCKSTEP_RETURN_IF_ERROR(ReadMaxTokens(json, "max_tokens", 1, &generation));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(request.tools, ReadAnthropicTools(json));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool thinks, ReadThinking(json));
  Json& context = request.template_context;
  LOCKSTEP_ASSIGN_OR_RETURN(context["messages"], ReadAnthropicMessages(json));
  if (request.tools.choice != ToolUse::Choice::kNone) context["tools"] = request.tools.tools;
  context["add_generation_prompt"] = true;
  context["enable_thinking"] = thinks;
  return request;
}

}  // namespace lockstep
