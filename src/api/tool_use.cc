#include "api/tool_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/excerpt.h"
#include "api/fields.h"

namespace lockstep {
namespace {

Status CheckTool(const Json& tool, const std::string& path) {
  if (!tool.is_object()) return WrongType(path, "an object", tool);
  const Json* type = FindField(tool, "type");
  if (type == nullptr) return Missing(path + ".type");
  if (!type->is_string()) return WrongType(path + ".type", "a string", *type);
  if (*type != "function") {
    return Unimplemented(fmt::format("'{}.type' must be \"function\"", path), path + ".type");
  }
  const Json* function = FindField(tool, "function");
  if (function == nullptr) return Missing(path + ".function");
  if (!function->is_object()) return WrongType(path + ".function", "an object", *function);
  const Json* name = FindField(*function, "name");
  if (name == nullptr) return Missing(path + ".function.name");
  if (!name->is_string()) return WrongType(path + ".function.name", "a string", *name);
  const Json* parameters = FindField(*function, "parameters");
  if (parameters != nullptr && !parameters->is_object()) {
    return WrongType(path + ".function.parameters", "an object", *parameters);
  }
  return OkStatus();
}

// {"type": "function", "function": {"name": ...}}
Status ReadNamedChoice(const Json& choice, ToolUse* use) {
  const std::string path = "tool_choice";
  const Json* type = FindField(choice, "type");
  if (type == nullptr) return Missing(path + ".type");
  if (*type != "function") {
    return Unimplemented("'tool_choice.type' must be \"function\"", path + ".type");
  }
  const Json* function = FindField(choice, "function");
  if (function == nullptr) return Missing(path + ".function");
  if (!function->is_object()) return WrongType(path + ".function", "an object", *function);
  const Json* name = FindField(*function, "name");
  if (name == nullptr) return Missing(path + ".function.name");
  if (!name->is_string()) return WrongType(path + ".function.name", "a string", *name);
  return ChooseTool(name->get<std::string>(), path, use);
}

Status ReadChoice(const Json& choice, ToolUse* use) {
  if (choice.is_object()) return ReadNamedChoice(choice, use);
  if (!choice.is_string()) return WrongType("tool_choice", "a string or an object", choice);
  if (choice == "none") {
    use->choice = ToolUse::Choice::kNone;
  } else if (choice == "auto") {
    use->choice = ToolUse::Choice::kAuto;
  } else if (choice == "required") {
    use->choice = ToolUse::Choice::kRequired;
  } else {
    return InvalidArgument(
        fmt::format("'tool_choice' is \"{}\"; it is none, auto, required or a function",
                    Excerpt(choice.get_ref<const std::string&>())),
        "tool_choice");
  }
  return OkStatus();
}

const std::string& NameOf(const Json& tool) {
  return tool["function"]["name"].get_ref<const std::string&>();
}

// The tools that may be called, by their place in the list.
std::vector<size_t> Callable(const ToolUse& use) {
  std::vector<size_t> callable;
  for (size_t i = 0; i < use.tools.size(); ++i) {
    if (use.only.empty() || NameOf(use.tools[i]) == use.only) callable.push_back(i);
  }
  return callable;
}

}  // namespace

Status ChooseTool(const std::string& name, const std::string& path, ToolUse* use) {
  for (const Json& tool : use->tools) {
    if (NameOf(tool) != name) continue;
    use->choice = ToolUse::Choice::kRequired;
    use->only = name;
    return OkStatus();
  }
  return InvalidArgument(
      fmt::format("'{}' is \"{}\", which is not among 'tools'", path, Excerpt(name)), path);
}

Result<ToolUse> ReadToolUse(const Json& body) {
  ToolUse use;
  if (const Json* tools = FindField(body, "tools")) {
    if (!tools->is_array()) return WrongType("tools", "an array", *tools);
    for (size_t i = 0; i < tools->size(); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(CheckTool((*tools)[i], fmt::format("tools[{}]", i)));
    }
    use.tools = *tools;
  }
  if (!use.tools.empty()) use.choice = ToolUse::Choice::kAuto;
  if (const Json* choice = FindField(body, "tool_choice")) {
    LOCKSTEP_RETURN_IF_ERROR(ReadChoice(*choice, &use));
    if (use.choice != ToolUse::Choice::kNone && use.tools.empty()) {
      return InvalidArgument("'tool_choice' is only allowed when 'tools' are given", "tool_choice");
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(body, "parallel_tool_calls", &use.parallel));
  return use;
}

EnforcedCalls EnforceCalls(const ToolUse& use, ToolFormat format) {
  EnforcedCalls enforced;
  std::string head = "<tool_call>\n";
  std::string arguments = "arguments";
  std::string tail = "\n</tool_call>";
  enforced.separator = "\n";
  if (format == ToolFormat::kLlama3) {
    head = tail = "";
    arguments = "parameters";
    enforced.separator = "; ";
  } else if (format == ToolFormat::kMistral) {
    head = tail = "";
    enforced.open = "[TOOL_CALLS][";
    enforced.separator = ", ";
    enforced.close = "]";
  }
  for (const size_t i : Callable(use)) {
    const std::string& name = NameOf(use.tools[i]);
    enforced.calls.push_back(
        {name, fmt::format("{}{{\"name\": {}, \"{}\": ", head, DumpJson(name), arguments),
         "}" + tail});
  }
  return enforced;
}

void AddCalls(const ToolUse& use, const EnforcedCalls& enforced, GrammarSpec* spec) {
  const std::vector<size_t> callable = Callable(use);
  for (size_t i = 0; i < callable.size(); ++i) {
    const Json& function = use.tools[callable[i]]["function"];
    const Json* parameters = FindField(function, "parameters");
    spec->calls.push_back({enforced.calls[i].before,
                           parameters != nullptr && !parameters->empty()
                               ? DumpJson(*parameters)
                               : R"({"type":"object","properties":{}})",
                           enforced.calls[i].after});
  }
  spec->many = use.many();
  spec->open = enforced.open;
  spec->separator = enforced.separator;
  spec->close = enforced.close;
}

std::string PathInTools(const ToolUse& use, const std::string& param) {
  const std::vector<size_t> callable = Callable(use);
  size_t at = callable.size();
  if (param.starts_with('[')) std::from_chars(param.data() + 1, param.data() + param.size(), at);
  if (at >= callable.size()) return "tools";
  const std::string below = param.substr(std::min(param.find(']') + 1, param.size()));
  return fmt::format("tools[{}].function.parameters{}", callable[at], Excerpt(below, 300));
}

}  // namespace lockstep
