#include "api/openai_responses/items.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "api/excerpt.h"
#include "api/fields.h"
#include "api/openai_chat/messages.h"

namespace lockstep {
namespace {

Result<std::string> RequiredString(const Json& object, const std::string& path, const char* name) {
  const std::string full = fmt::format("{}.{}", path, name);
  const Json* value = FindField(object, name);
  if (value == nullptr) return Missing(full);
  if (!value->is_string()) return WrongType(full, "a string", *value);
  return value->get<std::string>();
}

Status CheckOptionalString(const Json& object, const std::string& path, const char* name) {
  if (FindField(object, name) == nullptr) return OkStatus();
  return RequiredString(object, path, name).status();
}

Json Part(const char* type, std::string text) {
  Json part;
  part["type"] = type;
  part["text"] = std::move(text);
  if (part["type"] == "output_text") {
    part["annotations"] = Json::array();
    part["logprobs"] = Json::array();
  }
  return part;
}

// A string, or parts that hold text, as parts of type `as`.
Result<Json> ReadParts(const Json& content, const std::string& path, const char* as) {
  if (content.is_string()) return Json::array({Part(as, content.get<std::string>())});
  if (!content.is_array()) return WrongType(path, "a string or an array of parts", content);
  Json parts = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    if (!content[i].is_object()) return WrongType(at, "an object", content[i]);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, RequiredString(content[i], at, "type"));
    if (type != "input_text" && type != "output_text" && type != "reasoning_text") {
      return Unimplemented(
          fmt::format("'{}.type' is \"{}\"; this model takes only text", at, Excerpt(type)),
          at + ".type");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(std::string text, RequiredString(content[i], at, "text"));
    parts.push_back(Part(as, std::move(text)));
  }
  return parts;
}

Result<Json> ReadMessage(const Json& item, const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string role, RequiredString(item, path, "role"));
  if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
    return InvalidArgument(
        fmt::format("'{}.role' is \"{}\"; the roles are user, assistant, system and developer",
                    path, Excerpt(role)),
        path + ".role");
  }
  const Json* content = FindField(item, "content");
  if (content == nullptr) return Missing(path + ".content");
  Json out;
  out["type"] = "message";
  out["role"] = role;
  LOCKSTEP_ASSIGN_OR_RETURN(
      out["content"],
      ReadParts(*content, path + ".content", role == "assistant" ? "output_text" : "input_text"));
  return out;
}

Result<Json> ReadCall(const Json& item, const std::string& path) {
  Json out;
  out["type"] = "function_call";
  for (const char* name : {"call_id", "name", "arguments"}) {
    LOCKSTEP_ASSIGN_OR_RETURN(out[name], RequiredString(item, path, name));
  }
  // What no template can take is said while its place is known.
  LOCKSTEP_RETURN_IF_ERROR(ReadCallArguments(&out["arguments"], path + ".arguments").status());
  return out;
}

Result<Json> ReadOutput(const Json& item, const std::string& path) {
  Json out;
  out["type"] = "function_call_output";
  LOCKSTEP_ASSIGN_OR_RETURN(out["call_id"], RequiredString(item, path, "call_id"));
  const Json* output = FindField(item, "output");
  if (output == nullptr) return Missing(path + ".output");
  if (output->is_string()) {
    out["output"] = *output;
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(out["output"], ReadParts(*output, path + ".output", "input_text"));
  }
  return out;
}

// Of the reasoning its text is taken, not its summary, which the model has not written.
Result<Json> ReadReasoning(const Json& item, const std::string& path) {
  if (FindField(item, "encrypted_content") != nullptr) {
    return Unimplemented(fmt::format("'{}.encrypted_content' is not supported", path),
                         path + ".encrypted_content");
  }
  const Json* summary = FindField(item, "summary");
  if (summary != nullptr && !summary->is_array()) {
    return WrongType(path + ".summary", "an array", *summary);
  }
  Json out;
  out["type"] = "reasoning";
  out["summary"] = Json::array();
  out["content"] = Json::array();
  if (const Json* content = FindField(item, "content")) {
    if (!content->is_array()) return WrongType(path + ".content", "an array", *content);
    LOCKSTEP_ASSIGN_OR_RETURN(out["content"],
                              ReadParts(*content, path + ".content", "reasoning_text"));
  }
  return out;
}

struct Kind {
  const char* type;
  const char* id_prefix;
  Result<Json> (*read)(const Json& item, const std::string& path);
};

constexpr Kind kKinds[] = {{"message", "msg", ReadMessage},
                           {"function_call", "fc", ReadCall},
                           {"function_call_output", "fco", ReadOutput},
                           {"reasoning", "rs", ReadReasoning}};

Result<Json> ReadItem(const Json& item, const std::string& path, const std::string& own_id) {
  if (!item.is_object()) return WrongType(path, "an object", item);
  std::string type = "message";
  if (FindField(item, "type") != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(type, RequiredString(item, path, "type"));
  }
  for (const Kind& kind : kKinds) {
    if (type != kind.type) continue;
    LOCKSTEP_RETURN_IF_ERROR(CheckOptionalString(item, path, "id"));
    LOCKSTEP_RETURN_IF_ERROR(CheckOptionalString(item, path, "status"));
    LOCKSTEP_ASSIGN_OR_RETURN(Json out, kind.read(item, path));
    const Json* id = FindField(item, "id");
    out["id"] = id != nullptr ? *id : Json(fmt::format("{}_{}", kind.id_prefix, own_id));
    out["status"] = "completed";
    return out;
  }
  return Unimplemented(fmt::format("'{}.type' is \"{}\"; messages, function calls, their outputs "
                                   "and reasoning are taken",
                                   path, Excerpt(type)),
                       path + ".type");
}

std::string TextOf(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  for (const Json& part : content) text += part["text"].get_ref<const std::string&>();
  return text;
}

// The message of the assistant that the next item may be part of.
class Assistant {
 public:
  explicit Assistant(Json* messages) : messages_(messages) {}

  void Reason(std::string text) {
    // Reasoning comes first.
    if (open_ && (message_.contains("reasoning_content") || message_.contains("tool_calls") ||
                  message_["content"] != "")) {
      Close();
    }
    Open();
    message_["reasoning_content"] = std::move(text);
  }
  void Say(std::string text) {
    if (open_ && (message_.contains("tool_calls") || message_["content"] != "")) Close();
    Open();
    message_["content"] = std::move(text);
  }
  void Call(Json call) {
    Open();
    message_["tool_calls"].push_back(std::move(call));
  }
  void Close() {
    if (open_) messages_->push_back(std::move(message_));
    open_ = false;
  }

 private:
  void Open() {
    if (open_) return;
    open_ = true;
    message_ = Json::object();
    message_["role"] = "assistant";
    message_["content"] = "";
  }

  Json* messages_;
  Json message_;
  bool open_ = false;
};

}  // namespace

Result<Json> ReadInputItems(const Json& body, std::string_view unique) {
  const Json* input = FindField(body, "input");
  if (input == nullptr) return Missing("input");
  Json list = *input;
  if (input->is_string()) {
    list = Json::array({Json::object({{"role", "user"}, {"content", *input}})});
  } else if (!input->is_array()) {
    return WrongType("input", "a string or an array of items", *input);
  } else if (input->empty()) {
    return InvalidArgument("'input' must hold at least one item", "input");
  }
  Json items = Json::array();
  for (size_t i = 0; i < list.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(Json item, ReadItem(list[i], fmt::format("input[{}]", i),
                                                  fmt::format("{}i{:04}", unique, i)));
    items.push_back(std::move(item));
  }
  return items;
}

Result<Json> MessagesOfItems(const Json& items) {
  Json messages = Json::array();
  Assistant assistant(&messages);
  std::unordered_map<std::string, std::string> calls;  // the functions' names by call id
  for (const Json& item : items) {
    const std::string& type = item["type"].get_ref<const std::string&>();
    if (type == "reasoning") {
      assistant.Reason(TextOf(item["content"]));
      continue;
    }
    if (type == "function_call") {
      Json call;
      call["id"] = item["call_id"];
      call["type"] = "function";
      call["function"]["name"] = item["name"];
      LOCKSTEP_ASSIGN_OR_RETURN(call["function"]["arguments"],
                                ReadCallArguments(&item["arguments"], "input"));
      calls[item["call_id"].get<std::string>()] = item["name"].get<std::string>();
      assistant.Call(std::move(call));
      continue;
    }
    if (type == "message" && item["role"] == "assistant") {
      assistant.Say(TextOf(item["content"]));
      continue;
    }
    assistant.Close();
    Json message;
    if (type == "function_call_output") {
      const std::string& id = item["call_id"].get_ref<const std::string&>();
      const auto call = calls.find(id);
      if (call == calls.end()) {
        return InvalidArgument(
            fmt::format("'input' has an output of the function call \"{}\", but no such call",
                        Excerpt(id)),
            "input");
      }
      message["role"] = "tool";
      message["content"] = TextOf(item["output"]);
      message["name"] = call->second;
      message["tool_call_id"] = id;
    } else {
      // What OpenAI calls developer is what every template calls system.
      message["role"] = item["role"] == "user" ? "user" : "system";
      message["content"] = TextOf(item["content"]);
    }
    messages.push_back(std::move(message));
  }
  assistant.Close();
  return messages;
}

}  // namespace lockstep
