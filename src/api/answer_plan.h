// What a chat request's answer may look like and how it is taken apart: the grammar that constrains
// it and the parser that finds reasoning and calls in it, both from the model's chat template, the
// prompt and the request's fields. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "api/served_model.h"
#include "api/structured_output.h"
#include "api/tool_use.h"
#include "base/status.h"
#include "engine/request.h"
#include "text/answer_parser.h"

namespace lockstep {

struct AnswerPlan {
  AnswerParserOptions parser;
  std::shared_ptr<const Grammar> grammar;  // null: free text
  bool shows_control_tokens = false;       // the parser needs to see them
};

// `prompt` is the rendered one. Errors: kInvalidArgument naming what cannot be enforced.
Result<AnswerPlan> PlanAnswer(const ServedModel& model, std::string_view prompt,
                              const std::optional<StructuredOutput>& structured,
                              const ToolUse& use);

void ApplyPlan(const AnswerPlan& plan, GenerationRequest* request);

}  // namespace lockstep
