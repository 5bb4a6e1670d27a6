#include "api/anthropic_messages/messages.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "api/excerpt.h"
#include "api/fields.h"

namespace lockstep {
namespace {

Result<std::string> RequiredString(const Json& object, const std::string& path,
                                   std::string_view name) {
  const std::string full = fmt::format("{}.{}", path, name);
  const Json* value = FindField(object, name);
  if (value == nullptr) return Missing(full);
  if (!value->is_string()) return WrongType(full, "a string", *value);
  return value->get<std::string>();
}

Result<std::string> TypeOf(const Json& block, const std::string& path) {
  if (!block.is_object()) return WrongType(path, "an object", block);
  return RequiredString(block, path, "type");
}

Status Unknown(const std::string& type, const std::string& path) {
  return Unimplemented(
      fmt::format("'{}.type' is \"{}\", which this model does not take", path, Excerpt(type)),
      path + ".type");
}

// A string, or text blocks joined.
Result<std::string> ReadText(const Json& content, const std::string& path) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return WrongType(path, "a string or an array of blocks", content);
  std::string joined;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}.{}", path, i);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, TypeOf(content[i], at));
    if (type != "text") return Unknown(type, at);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, RequiredString(content[i], at, "text"));
    joined += text;
  }
  return joined;
}

Json Message(const char* role, std::string content) {
  Json message;
  message["role"] = role;
  message["content"] = std::move(content);
  return message;
}

Result<Json> ReadToolResult(const Json& block, const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string id, RequiredString(block, path, "tool_use_id"));
  bool ignored = false;
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(block, "is_error", &ignored));
  std::string text;
  if (const Json* content = FindField(block, "content")) {
    LOCKSTEP_ASSIGN_OR_RETURN(text, ReadText(*content, path + ".content"));
  }
  Json message = Message("tool", std::move(text));
  message["tool_call_id"] = std::move(id);
  return message;
}

// Results of tools are messages of their own, before what the user says beside them.
Status ReadUser(const Json& content, const std::string& path, Json* messages) {
  if (content.is_string()) {
    messages->push_back(Message("user", content.get<std::string>()));
    return OkStatus();
  }
  if (!content.is_array()) return WrongType(path, "a string or an array of blocks", content);
  std::string text;
  bool has_text = content.empty();
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}.{}", path, i);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, TypeOf(content[i], at));
    if (type == "tool_result") {
      LOCKSTEP_ASSIGN_OR_RETURN(Json result, ReadToolResult(content[i], at));
      messages->push_back(std::move(result));
      continue;
    }
    if (type != "text") return Unknown(type, at);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string part, RequiredString(content[i], at, "text"));
    text += part;
    has_text = true;
  }
  if (has_text) messages->push_back(Message("user", std::move(text)));
  return OkStatus();
}

Result<Json> ReadToolUseBlock(const Json& block, const std::string& path) {
  Json call;
  LOCKSTEP_ASSIGN_OR_RETURN(call["id"], RequiredString(block, path, "id"));
  call["type"] = "function";
  LOCKSTEP_ASSIGN_OR_RETURN(call["function"]["name"], RequiredString(block, path, "name"));
  const Json* input = FindField(block, "input");
  if (input != nullptr && !input->is_object()) {
    return WrongType(path + ".input", "an object", *input);
  }
  call["function"]["arguments"] = input != nullptr ? *input : Json::object();
  return call;
}

Status ReadAssistant(const Json& content, const std::string& path, Json* messages) {
  if (content.is_string()) {
    messages->push_back(Message("assistant", content.get<std::string>()));
    return OkStatus();
  }
  if (!content.is_array()) return WrongType(path, "a string or an array of blocks", content);
  std::string text;
  std::string thinking;
  Json calls = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}.{}", path, i);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, TypeOf(content[i], at));
    if (type == "text") {
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string part, RequiredString(content[i], at, "text"));
      text += part;
    } else if (type == "tool_use") {
      LOCKSTEP_ASSIGN_OR_RETURN(Json call, ReadToolUseBlock(content[i], at));
      calls.push_back(std::move(call));
    } else if (type == "thinking") {
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string part, RequiredString(content[i], at, "thinking"));
      thinking += part;
    } else {
      return Unknown(type, at);
    }
  }
  Json message = Message("assistant", std::move(text));
  if (!thinking.empty()) message["reasoning_content"] = std::move(thinking);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  messages->push_back(std::move(message));
  return OkStatus();
}

Status ReadMessage(const Json& message, const std::string& path, Json* messages) {
  if (!message.is_object()) return WrongType(path, "an object", message);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string role, RequiredString(message, path, "role"));
  const Json* content = FindField(message, "content");
  if (content == nullptr) return Missing(path + ".content");
  if (role == "user") return ReadUser(*content, path + ".content", messages);
  if (role == "assistant") return ReadAssistant(*content, path + ".content", messages);
  return InvalidArgument(
      fmt::format("'{}.role' is \"{}\"; the roles are user and assistant", path, Excerpt(role)),
      path + ".role");
}

Result<Json> ReadTool(const Json& tool, const std::string& path) {
  if (!tool.is_object()) return WrongType(path, "an object", tool);
  if (FindField(tool, "type") != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, TypeOf(tool, path));
    if (type != "custom") return Unknown(type, path);
  }
  Json function;
  LOCKSTEP_ASSIGN_OR_RETURN(function["name"], RequiredString(tool, path, "name"));
  if (FindField(tool, "description") != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(function["description"], RequiredString(tool, path, "description"));
  }
  const Json* schema = FindField(tool, "input_schema");
  if (schema == nullptr) return Missing(path + ".input_schema");
  if (!schema->is_object()) return WrongType(path + ".input_schema", "an object", *schema);
  function["parameters"] = *schema;
  Json out;
  out["type"] = "function";
  out["function"] = std::move(function);
  return out;
}

Status ReadChoice(const Json& choice, ToolUse* use) {
  const std::string path = "tool_choice";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, TypeOf(choice, path));
  bool one = false;
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(choice, "disable_parallel_tool_use", &one));
  use->parallel = !one;
  if (type == "none") {
    use->choice = ToolUse::Choice::kNone;
    return OkStatus();
  }
  if (use->tools.empty()) {
    return InvalidArgument("'tool_choice' is only allowed when 'tools' are given", path);
  }
  if (type == "auto") return OkStatus();
  if (type == "any") {
    use->choice = ToolUse::Choice::kRequired;
    return OkStatus();
  }
  if (type != "tool") {
    return InvalidArgument(
        fmt::format("'tool_choice.type' is \"{}\"; it is auto, any, tool or none", Excerpt(type)),
        path + ".type");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string name, RequiredString(choice, path, "name"));
  return ChooseTool(name, path + ".name", use);
}

}  // namespace

Result<Json> ReadAnthropicMessages(const Json& body) {
  Json out = Json::array();
  if (const Json* system = FindField(body, "system")) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string text, ReadText(*system, "system"));
    out.push_back(Message("system", std::move(text)));
  }
  const Json* messages = FindField(body, "messages");
  if (messages == nullptr) return Missing("messages");
  if (!messages->is_array()) return WrongType("messages", "an array", *messages);
  if (messages->empty()) {
    return InvalidArgument("'messages' must hold at least one message", "messages");
  }
  for (size_t i = 0; i < messages->size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(ReadMessage((*messages)[i], fmt::format("messages.{}", i), &out));
  }
  if (out.back()["role"] == "assistant") {
    return InvalidArgument(
        "the last of 'messages' must be the user's: continuing an answer is not "
        "supported",
        "messages");
  }
  return out;
}

Result<ToolUse> ReadAnthropicTools(const Json& body) {
  ToolUse use;
  if (const Json* tools = FindField(body, "tools")) {
    if (!tools->is_array()) return WrongType("tools", "an array", *tools);
    for (size_t i = 0; i < tools->size(); ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(Json tool, ReadTool((*tools)[i], fmt::format("tools.{}", i)));
      use.tools.push_back(std::move(tool));
    }
  }
  if (!use.tools.empty()) use.choice = ToolUse::Choice::kAuto;
  if (const Json* choice = FindField(body, "tool_choice")) {
    LOCKSTEP_RETURN_IF_ERROR(ReadChoice(*choice, &use));
  }
  return use;
}

}  // namespace lockstep
