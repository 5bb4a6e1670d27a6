#include "apps/serving/template_trial.h"

#include <string>
#include <string_view>

namespace lockstep {
namespace {

struct Trial {
  std::string_view name;
  std::string_view context;
};

constexpr Trial kTrials[] = {
    {"a question", R"({"messages":[{"role":"user","content":"a"}],"add_generation_prompt":true})"},
    {"a conversation", R"({"messages":[{"role":"system","content":"a"},
      {"role":"user","content":"b"},{"role":"assistant","content":"c"},
      {"role":"user","content":"d"}],"add_generation_prompt":true})"},
    {"a call of a tool", R"({"messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":"","tool_calls":[{"id":"abcdefghi","type":"function",
       "function":{"name":"f","arguments":{"x":1}}}]},
      {"role":"tool","tool_call_id":"abcdefghi","name":"f","content":"2"}],
      "tools":[{"type":"function","function":{"name":"f","description":"g",
       "parameters":{"type":"object","properties":{"x":{"type":["integer","null"],
        "description":"h"}},"required":["x"]}}}],
      "add_generation_prompt":true})"},
};

// Its own message, for a conversation that it does not take.
bool Raised(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument && status.param() == "messages";
}

}  // namespace

Status TryChatTemplate(const ChatTemplate& chat_template) {
  for (const Trial& trial : kTrials) {
    const Status status = chat_template.Render(trial.context).status();
    if (!status.ok() && !Raised(status)) {
      return status.WithContext("rendering " + std::string(trial.name));
    }
  }
  return OkStatus();
}

}  // namespace lockstep
