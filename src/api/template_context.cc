#include "api/template_context.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "api/fields.h"

namespace lockstep {

Result<Json> ReadTemplateContext(const Json& body, Json messages, const ToolUse& use) {
  Json context;
  context["messages"] = std::move(messages);
  if (use.choice != ToolUse::Choice::kNone) context["tools"] = use.tools;
  bool add_generation_prompt = true;
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(body, "add_generation_prompt", &add_generation_prompt));
  context["add_generation_prompt"] = add_generation_prompt;
  if (FindField(body, "reasoning_effort") != nullptr) {
    std::string effort;
    LOCKSTEP_RETURN_IF_ERROR(ReadString(body, "reasoning_effort", &effort));
    context["reasoning_effort"] = effort;
  }
  const Json* extra = FindField(body, "chat_template_kwargs");
  if (extra == nullptr) return context;
  if (!extra->is_object()) return WrongType("chat_template_kwargs", "an object", *extra);
  for (const auto& [key, value] : extra->get_ref<const Json::object_t&>()) {
    if (key == "messages" || key == "tools" || key == "add_generation_prompt") {
      return InvalidArgument(
          fmt::format("'chat_template_kwargs' must not set '{}': it has a field of its own", key),
          "chat_template_kwargs");
    }
    context[key] = value;
  }
  return context;
}

}  // namespace lockstep
