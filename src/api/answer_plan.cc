#include "api/answer_plan.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "text/answer_format.h"

namespace lockstep {
namespace {

// Marks that may be control tokens, which a text never spells.
constexpr std::array<std::string_view, 8> kMarks = {
    kThinkBegin,      kThinkEnd,      "<tool_call>",         "</tool_call>",
    "<|python_tag|>", "[TOOL_CALLS]", "<|tool_call_start|>", "<|tool_call_end|>"};

bool IsControl(const Tokenizer& tokenizer, std::string_view text) {
  const auto id = tokenizer.FindToken(text);
  return id && tokenizer.IsSpecial(*id);
}

Status WithPath(const Status& status, const std::optional<StructuredOutput>& structured,
                const ToolUse& use) {
  const bool in_tools = !structured || status.param().starts_with('[');
  if (!in_tools) return AtField(status, structured->path);
  const std::string path = PathInTools(use, status.param());
  return Status(status.code(), fmt::format("'{}': {}", path, status.message()), path);
}

}  // namespace

Result<AnswerPlan> PlanAnswer(const ServedModel& model, std::string_view prompt,
                              const std::optional<StructuredOutput>& structured,
                              const ToolUse& use) {
  const std::string& source = model.chat_template->source();
  AnswerPlan plan;
  plan.parser.reasons = Reasons(source);
  plan.parser.reasoning_open = plan.parser.reasons && OpensReasoning(prompt);
  const bool required = use.choice == ToolUse::Choice::kRequired;
  const bool tools = use.choice != ToolUse::Choice::kNone;
  if (tools) {
    plan.parser.tools = ToolFormatOf(source);
    plan.parser.one_call = !use.many();
  }
  if (!tools && !plan.parser.reasons && !structured) return plan;

  GrammarSpec spec;
  for (const std::string_view mark : kMarks) {
    if (!IsControl(*model.tokenizer, mark)) continue;
    spec.controls.emplace_back(std::string(mark), *model.tokenizer->FindToken(mark));
    plan.shows_control_tokens |= tools || plan.parser.reasons;
  }
  if (!structured && !required) return plan;
  if (structured) {
    spec.kind = structured->spec.kind;
    spec.text = structured->spec.text;
  }
  if (tools) {
    // A call that must be is all the answer; one that may be stands for it.
    if (required) spec.kind = GrammarSpec::Kind::kCalls;
    const EnforcedCalls enforced = EnforceCalls(use, plan.parser.tools);
    AddCalls(use, enforced, &spec);
    if (required) plan.parser.enforced = std::make_shared<EnforcedCalls>(enforced);
  }
  if (plan.parser.reasons) {
    spec.think_begin = kThinkBegin;
    spec.think_end = kThinkEnd;
    spec.think_opened = plan.parser.reasoning_open;
  }
  auto grammar = model.grammars->Compile(spec);
  if (!grammar.ok()) {
    return WithPath(grammar.status(), required ? std::nullopt : structured, use);
  }
  plan.grammar = std::move(grammar).value();
  return plan;
}

void ApplyPlan(const AnswerPlan& plan, GenerationRequest* request) {
  request->grammar = plan.grammar;
  if (plan.shows_control_tokens) request->skip_special_tokens = false;
}

}  // namespace lockstep
