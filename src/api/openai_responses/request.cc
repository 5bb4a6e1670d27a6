#include "api/openai_responses/request.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "api/excerpt.h"
#include "api/fields.h"
#include "api/openai_responses/items.h"
#include "api/openai_responses/tools.h"
#include "api/template_context.h"

namespace lockstep {
namespace {

constexpr size_t kMaxMetadata = 16;
constexpr size_t kMaxMetadataKey = 64;
constexpr size_t kMaxMetadataValue = 512;

constexpr UnsupportedField kUnsupported[] = {
    {"background", "false"},
    {"background_options", nullptr},
    {"context_management", nullptr},
    {"conversation", nullptr},
    {"image", nullptr},
    {"max_tool_calls", nullptr},
    {"moderation", nullptr},
    {"prompt", nullptr},
    {"prompt_cache_options", nullptr},
    {"prompt_cache_retention", "\"in_memory\""},
    {"access_programs", nullptr},
    {"top_logprobs", "0"},
    {"logprobs", "false"},
    {"n", "1"},
    {"best_of", "1"},
    {"messages", nullptr},
    {"max_tokens", nullptr},
    {"max_completion_tokens", nullptr},
    {"response_format", nullptr},
    {"functions", "[]"},
    {"function_call", "\"none\""},
    {"chat_template", nullptr},
};

constexpr UnsupportedField kUnsupportedText[] = {{"verbosity", "\"medium\""}};
constexpr UnsupportedField kUnsupportedReasoning[] = {
    {"summary", "\"auto\""},
    {"generate_summary", "\"auto\""},
    {"context", "\"auto\""},
    {"mode", "\"standard\""},
};

constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                      "high", "xhigh",   "max"};

// The reasoning is in the answer in plain text, so that "encrypted" adds nothing to it.
constexpr const char* kPlainReasoning = "reasoning.encrypted_content";

// The refusal of a field that stands within another.
Status Within(const char* field, const Status& status) {
  if (status.ok()) return status;
  const std::string path = fmt::format("{}.{}", field, status.param());
  return Unimplemented(fmt::format("'{}' is not supported yet", path), path);
}

Status CheckInclude(const Json& body) {
  const Json* include = FindField(body, "include");
  if (include == nullptr) return OkStatus();
  if (!include->is_array()) return WrongType("include", "an array", *include);
  for (size_t i = 0; i < include->size(); ++i) {
    const Json& item = (*include)[i];
    const std::string path = fmt::format("include[{}]", i);
    if (!item.is_string()) return WrongType(path, "a string", item);
    if (item == kPlainReasoning) continue;
    return Unimplemented(fmt::format("'{}' is \"{}\"; only {} is known", path,
                                     Excerpt(item.get_ref<const std::string&>()), kPlainReasoning),
                         path);
  }
  return OkStatus();
}

Status CheckMetadata(const Json& body) {
  const Json* metadata = FindField(body, "metadata");
  if (metadata == nullptr) return OkStatus();
  if (!metadata->is_object()) return WrongType("metadata", "an object", *metadata);
  if (metadata->size() > kMaxMetadata) {
    return InvalidArgument(fmt::format("'metadata' may hold at most {} pairs", kMaxMetadata),
                           "metadata");
  }
  for (const auto& [key, value] : metadata->get_ref<const Json::object_t&>()) {
    if (key.size() <= kMaxMetadataKey && value.is_string() &&
        value.get_ref<const std::string&>().size() <= kMaxMetadataValue) {
      continue;
    }
    return InvalidArgument(
        fmt::format("'metadata[\"{}\"]': keys have at most {} bytes, values are strings of at "
                    "most {}",
                    Excerpt(key), kMaxMetadataKey, kMaxMetadataValue),
        "metadata");
  }
  return OkStatus();
}

// Accepted, of no effect on the answer, but still of the API's types.
Status CheckIgnored(const Json& body) {
  std::string text;
  for (const char* name : {"service_tier", "safety_identifier", "prompt_cache_key"}) {
    LOCKSTEP_RETURN_IF_ERROR(ReadString(body, name, &text));
  }
  if (const Json* format = FindField(body, "text")) {
    if (!format->is_object()) return WrongType("text", "an object", *format);
    return Within("text", RefuseUnsupported(*format, kUnsupportedText));
  }
  return OkStatus();
}

// The effort that is asked for, or none.
Result<std::string> ReadEffort(const Json& body) {
  std::string effort;
  const Json* reasoning = FindField(body, "reasoning");
  if (reasoning == nullptr) return effort;
  if (!reasoning->is_object()) return WrongType("reasoning", "an object", *reasoning);
  LOCKSTEP_RETURN_IF_ERROR(
      Within("reasoning", RefuseUnsupported(*reasoning, kUnsupportedReasoning)));
  const Json* value = FindField(*reasoning, "effort");
  if (value == nullptr) return effort;
  for (const std::string_view known : kEfforts) {
    if (value->is_string() && value->get_ref<const std::string&>() == known) {
      return std::string(known);
    }
  }
  return InvalidArgument("'reasoning.effort' is none, minimal, low, medium, high, xhigh or max",
                         "reasoning.effort");
}

// The items of the conversation before, its answer included.
Result<Json> PreviousItems(const std::string& id, const ApiCall& call, const ServedModel& model) {
  const auto previous =
      model.responses == nullptr ? nullptr : model.responses->Find(id, call.owner);
  if (previous == nullptr) return NoSuchResponse(id, "previous_response_id");
  Json items = Json::parse(previous->items);
  Json response = Json::parse(previous->response);
  for (Json& item : response["output"]) items.push_back(std::move(item));
  return items;
}

Status ReadConversation(const Json& body, const ApiCall& call, const ServedModel& model,
                        ResponsesRequest* request) {
  // What is wrong with the request itself is said first.
  LOCKSTEP_ASSIGN_OR_RETURN(Json items, ReadInputItems(body, call.unique));
  request->items = Json::array();
  if (FindField(body, "previous_response_id") != nullptr) {
    std::string id;
    LOCKSTEP_RETURN_IF_ERROR(ReadString(body, "previous_response_id", &id));
    LOCKSTEP_ASSIGN_OR_RETURN(request->items, PreviousItems(id, call, model));
  }
  for (Json& item : items) request->items.push_back(std::move(item));
  Json messages = Json::array();
  std::string instructions;
  LOCKSTEP_RETURN_IF_ERROR(ReadString(body, "instructions", &instructions));
  if (!instructions.empty()) {
    messages.push_back(Json::object({{"role", "system"}, {"content", instructions}}));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Json talk, MessagesOfItems(request->items));
  for (Json& message : talk) messages.push_back(std::move(message));
  LOCKSTEP_ASSIGN_OR_RETURN(request->template_context,
                            ReadTemplateContext(body, std::move(messages), request->tools));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string effort, ReadEffort(body));
  Json& context = request->template_context;
  if (!effort.empty()) context["reasoning_effort"] = effort;
  if (effort == "none" && !context.contains("enable_thinking")) context["enable_thinking"] = false;
  return OkStatus();
}

Status ReadStore(const Json& body, const ServedModel& model, ResponsesRequest* request) {
  request->store = model.responses != nullptr;
  bool asked = false;
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(body, "store", &asked));
  if (FindField(body, "store") == nullptr) return OkStatus();
  if (asked && model.responses == nullptr) {
    return Unimplemented("'store': this server keeps no responses", "store");
  }
  request->store = asked;
  return OkStatus();
}

Json Echo(const Json& body, const char* name, Json absent) {
  const Json* value = FindField(body, name);
  if (value != nullptr) return *value;
  return absent;
}

// With the defaults that were taken. What only the answer knows stands where it belongs.
Json Head(const Json& body, const ApiCall& call, const ServedModel& model,
          const ResponsesRequest& request) {
  const SamplingParams& sampling = request.fields.request.sampling;
  const ToolUse& use = request.tools;
  Json head;
  head["id"] = "resp_" + call.unique;
  head["object"] = "response";
  head["created_at"] = call.created;
  head["status"] = "in_progress";
  head["background"] = false;
  head["completed_at"] = nullptr;
  head["error"] = nullptr;
  head["incomplete_details"] = nullptr;
  head["instructions"] = Echo(body, "instructions", nullptr);
  head["max_output_tokens"] = Echo(body, "max_output_tokens", nullptr);
  head["max_tool_calls"] = nullptr;
  head["metadata"] = Echo(body, "metadata", Json::object());
  head["model"] = model.id;
  head["output"] = Json::array();
  head["parallel_tool_calls"] = use.parallel;
  head["previous_response_id"] = Echo(body, "previous_response_id", nullptr);
  head["prompt_cache_key"] = Echo(body, "prompt_cache_key", nullptr);
  const Json* reasoning = FindField(body, "reasoning");
  head["reasoning"]["effort"] = reasoning != nullptr ? Echo(*reasoning, "effort", nullptr) : Json();
  head["reasoning"]["summary"] = nullptr;
  head["safety_identifier"] = Echo(body, "safety_identifier", nullptr);
  head["service_tier"] = "default";
  head["store"] = request.store;
  head["temperature"] = Echo(body, "temperature", sampling.temperature);
  Json format;
  format["type"] = "text";
  const Json* text = FindField(body, "text");
  head["text"]["format"] = text != nullptr ? Echo(*text, "format", format) : format;
  head["text"]["verbosity"] = "medium";
  head["tool_choice"] = Echo(body, "tool_choice", use.tools.empty() ? "none" : "auto");
  head["tools"] = Echo(body, "tools", Json::array());
  head["top_logprobs"] = 0;
  head["top_p"] = Echo(body, "top_p", sampling.top_p);
  head["truncation"] = "disabled";
  head["usage"] = nullptr;
  head["user"] = Echo(body, "user", nullptr);
  return head;
}

}  // namespace

Result<ResponsesRequest> ReadResponsesRequest(const ApiCall& call, const ServedModel& model) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json body, ParseJsonObject(call.body));
  ResponsesRequest request;
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnsupported(body, kUnsupported));
  LOCKSTEP_ASSIGN_OR_RETURN(request.fields, ReadGenerationFields(body, model));
  LOCKSTEP_RETURN_IF_ERROR(CheckIgnored(body));
  LOCKSTEP_RETURN_IF_ERROR(CheckInclude(body));
  LOCKSTEP_RETURN_IF_ERROR(CheckMetadata(body));
  LOCKSTEP_RETURN_IF_ERROR(ReadMaxTokens(body, "max_output_tokens", 1, &request.fields.request));
  LOCKSTEP_ASSIGN_OR_RETURN(request.structured, ReadStructuredText(body));
  LOCKSTEP_ASSIGN_OR_RETURN(request.tools, ReadResponsesTools(body));
  LOCKSTEP_RETURN_IF_ERROR(ReadStore(body, model, &request));
  LOCKSTEP_RETURN_IF_ERROR(ReadConversation(body, call, model, &request));
  request.head = Head(body, call, model, request);
  return request;
}

Status NoSuchResponse(std::string_view id, const char* param) {
  return NotFound(fmt::format("there is no response '{}' (any more): it was never made here, not "
                              "stored, deleted, or is too old",
                              Excerpt(id)),
                  param);
}

}  // namespace lockstep
