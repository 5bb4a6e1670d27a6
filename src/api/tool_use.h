// The tools of a request, which of them the answer may or must call, and how the call is enforced.
// Not: finding calls in an answer (text/answer_parser.h). Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/json.h"
#include "base/status.h"
#include "grammar/grammar.h"
#include "text/answer_parser.h"

namespace lockstep {

struct ToolUse {
  enum class Choice { kNone, kAuto, kRequired };

  Json tools = Json::array();  // as the API of chat completions has them, checked
  Choice choice = Choice::kNone;
  std::string only;  // not empty: this tool and no other, once
  bool parallel = true;

  bool many() const { return parallel && only.empty(); }
};

// `tools`, `tool_choice` and `parallel_tool_calls` of chat completions. Errors: kInvalidArgument or
// kUnimplemented naming the field.
Result<ToolUse> ReadToolUse(const Json& body);

// Sets the choice; the tool must be there. `path` names the field for errors.
Status ChooseTool(const std::string& name, const std::string& path, ToolUse* use);

// Calls in the model's format, all but their arguments; one for each tool that may be called.
EnforcedCalls EnforceCalls(const ToolUse& use, ToolFormat format);
// The grammar of those calls.
void AddCalls(const ToolUse& use, const EnforcedCalls& enforced, GrammarSpec* spec);
// The field that a compiler's "[1].properties" speaks of.
std::string PathInTools(const ToolUse& use, const std::string& param);

}  // namespace lockstep
