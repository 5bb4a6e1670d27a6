#include "api/openai_chat/messages.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "api/excerpt.h"
#include "api/fields.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

Result<std::string> ReadContentPart(const Json& part, const std::string& path) {
  if (!part.is_object()) return WrongType(path, "an object", part);
  const Json* type = FindField(part, "type");
  if (type == nullptr) return Missing(path + ".type");
  if (!type->is_string()) return WrongType(path + ".type", "a string", *type);
  if (*type != "text") {
    return Unimplemented(fmt::format("'{}.type' is \"{}\"; this model takes only text", path,
                                     Excerpt(type->get_ref<const std::string&>())),
                         path + ".type");
  }
  const Json* text = FindField(part, "text");
  if (text == nullptr) return Missing(path + ".text");
  if (!text->is_string()) return WrongType(path + ".text", "a string", *text);
  return text->get<std::string>();
}

Result<std::string> ReadContent(const Json& content, const std::string& path) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return WrongType(path, "a string or an array of parts", content);
  std::string joined;
  for (size_t i = 0; i < content.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                              ReadContentPart(content[i], fmt::format("{}[{}]", path, i)));
    joined += text;
  }
  return joined;
}

Result<Json> ReadToolCall(const Json& call, const std::string& path) {
  if (!call.is_object()) return WrongType(path, "an object", call);
  const Json* function = FindField(call, "function");
  if (function == nullptr) return Missing(path + ".function");
  if (!function->is_object()) return WrongType(path + ".function", "an object", *function);
  const Json* name = FindField(*function, "name");
  if (name == nullptr) return Missing(path + ".function.name");
  if (!name->is_string()) return WrongType(path + ".function.name", "a string", *name);
  Json out;
  if (const Json* id = FindField(call, "id")) {
    if (!id->is_string()) return WrongType(path + ".id", "a string", *id);
    out["id"] = *id;
  }
  out["type"] = "function";
  out["function"]["name"] = *name;
  LOCKSTEP_ASSIGN_OR_RETURN(
      out["function"]["arguments"],
      ReadCallArguments(FindField(*function, "arguments"), path + ".function.arguments"));
  return out;
}

Result<Json> ReadToolCalls(const Json& calls, const std::string& path) {
  if (!calls.is_array()) return WrongType(path, "an array", calls);
  Json out = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(Json call, ReadToolCall(calls[i], fmt::format("{}[{}]", path, i)));
    out.push_back(std::move(call));
  }
  return out;
}

Result<std::string> ReadRole(const Json& message, const std::string& path) {
  const Json* role = FindField(message, "role");
  if (role == nullptr) return Missing(path);
  if (!role->is_string()) return WrongType(path, "a string", *role);
  const std::string& name = role->get_ref<const std::string&>();
  for (const std::string_view known : kRoles) {
    // What OpenAI calls developer is what every template calls system.
    if (name == known) return name == "developer" ? std::string("system") : name;
  }
  return InvalidArgument(
      fmt::format("'{}' is \"{}\"; the roles are system, developer, user, assistant and tool", path,
                  Excerpt(name)),
      path);
}

Result<Json> ReadMessage(const Json& message, const std::string& path) {
  if (!message.is_object()) return WrongType(path, "an object", message);
  Json out;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string role, ReadRole(message, path + ".role"));
  out["role"] = role;
  if (const Json* content = FindField(message, "content")) {
    LOCKSTEP_ASSIGN_OR_RETURN(out["content"], ReadContent(*content, path + ".content"));
  } else if (role == "assistant" || role == "tool") {
    out["content"] = "";
  } else {
    return Missing(path + ".content");
  }
  if (const Json* calls = FindField(message, "tool_calls")) {
    if (role != "assistant") {
      return InvalidArgument(
          fmt::format("'{}.tool_calls' is only allowed in assistant messages", path),
          path + ".tool_calls");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(Json read, ReadToolCalls(*calls, path + ".tool_calls"));
    if (!read.empty()) out["tool_calls"] = std::move(read);
  }
  for (const char* name : {"name", "tool_call_id", "reasoning_content", "reasoning"}) {
    const Json* value = FindField(message, name);
    if (value == nullptr) continue;
    if (!value->is_string()) return WrongType(path + "." + name, "a string", *value);
    out[name] = *value;
  }
  return out;
}

}  // namespace

Result<Json> ReadCallArguments(const Json* arguments, const std::string& path) {
  if (arguments == nullptr) return Json::object();
  if (arguments->is_object()) return *arguments;
  if (!arguments->is_string()) return WrongType(path, "a string", *arguments);
  bool malformed = false;
  Result<Json> parsed = ParseJson(arguments->get_ref<const std::string&>(), &malformed);
  if (!parsed.ok() && !malformed) {
    return InvalidArgument(fmt::format("'{}': {}", path, parsed.status().message()), path);
  }
  if (parsed.ok() && parsed->is_object()) return *parsed;
  return *arguments;
}

Result<Json> ReadMessages(const Json& body) {
  const Json* messages = FindField(body, "messages");
  if (messages == nullptr) return Missing("messages");
  if (!messages->is_array()) return WrongType("messages", "an array", *messages);
  if (messages->empty()) {
    return InvalidArgument("'messages' must hold at least one message", "messages");
  }
  Json out = Json::array();
  for (size_t i = 0; i < messages->size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(Json message,
                              ReadMessage((*messages)[i], fmt::format("messages[{}]", i)));
    out.push_back(std::move(message));
  }
  return out;
}

}  // namespace lockstep
