#include "api/openai_responses/tools.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "api/excerpt.h"
#include "api/fields.h"

namespace lockstep {
namespace {

Status Check(const Json& object, const std::string& path, const char* name, bool required) {
  const Json* value = FindField(object, name);
  const std::string full = fmt::format("{}.{}", path, name);
  if (value == nullptr) return required ? Missing(full) : OkStatus();
  return value->is_string() ? OkStatus() : WrongType(full, "a string", *value);
}

Result<Json> ReadTool(const Json& tool, const std::string& path) {
  if (!tool.is_object()) return WrongType(path, "an object", tool);
  LOCKSTEP_RETURN_IF_ERROR(Check(tool, path, "type", /*required=*/true));
  if (tool["type"] != "function") {
    return Unimplemented(fmt::format("'{}.type' is \"{}\"; there are no tools but functions", path,
                                     Excerpt(tool["type"].get_ref<const std::string&>())),
                         path + ".type");
  }
  LOCKSTEP_RETURN_IF_ERROR(Check(tool, path, "name", /*required=*/true));
  LOCKSTEP_RETURN_IF_ERROR(Check(tool, path, "description", /*required=*/false));
  const Json* strict = FindField(tool, "strict");
  if (strict != nullptr && !strict->is_boolean()) {
    return WrongType(path + ".strict", "a boolean", *strict);
  }
  const Json* parameters = FindField(tool, "parameters");
  if (parameters != nullptr && !parameters->is_object()) {
    return WrongType(path + ".parameters", "an object", *parameters);
  }
  Json out;
  out["type"] = "function";
  for (const char* name : {"name", "description", "parameters"}) {
    const Json* value = FindField(tool, name);
    if (value != nullptr) out["function"][name] = *value;
  }
  return out;
}

}  // namespace

Result<ToolUse> ReadResponsesTools(const Json& body) {
  Json chat = Json::object();
  if (const Json* tools = FindField(body, "tools")) {
    if (!tools->is_array()) return WrongType("tools", "an array", *tools);
    chat["tools"] = Json::array();
    for (size_t i = 0; i < tools->size(); ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(Json tool, ReadTool((*tools)[i], fmt::format("tools[{}]", i)));
      chat["tools"].push_back(std::move(tool));
    }
  }
  if (const Json* choice = FindField(body, "tool_choice")) {
    const Json* type = choice->is_object() ? FindField(*choice, "type") : nullptr;
    if (type != nullptr && *type == "function") {
      LOCKSTEP_RETURN_IF_ERROR(Check(*choice, "tool_choice", "name", /*required=*/true));
      chat["tool_choice"]["type"] = "function";
      chat["tool_choice"]["function"]["name"] = (*choice)["name"];
    } else {
      chat["tool_choice"] = *choice;
    }
  }
  if (const Json* parallel = FindField(body, "parallel_tool_calls")) {
    chat["parallel_tool_calls"] = *parallel;
  }
  return ReadToolUse(chat);
}

}  // namespace lockstep
