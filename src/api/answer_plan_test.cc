#include "api/answer_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::ModelOptions;
using testing::TestModel;

constexpr const char* kThinks = "{{ '<think></think>' }}";

TestModel Model(const std::string& chat_template) {
  ModelOptions options;
  options.chat_template = chat_template;
  return TestModel(options);
}

ToolUse Use(ToolUse::Choice choice) {
  ToolUse use;
  use.tools = Json::parse(R"([{"type":"function","function":{"name":"f"}}])");
  use.choice = choice;
  return use;
}

std::optional<StructuredOutput> Schema() {
  StructuredOutput output;
  output.spec.text = R"({"type":"integer"})";
  output.path = "guided_json";
  return output;
}

// Whether the answer may be `text`, and no more than it.
bool Takes(const AnswerPlan& plan, const std::string& text) {
  auto matcher = plan.grammar->Start();
  EXPECT_TRUE(matcher.ok());
  for (const TokenId token : testing::Bytes(text)) {
    const auto t = static_cast<size_t>(token);
    if ((*matcher)->complete() || ((*matcher)->mask()[t / 32] >> (t % 32) & 1) == 0) return false;
    EXPECT_TRUE((*matcher)->Accept(token).ok());
    (*matcher)->FillMask();
  }
  return (*matcher)->complete() ||
         ((*matcher)->mask()[testing::kImEnd / 32] >> (testing::kImEnd % 32) & 1) != 0;
}

TEST(AnswerPlan, PlainAnswersNeedNothing) {
  const TestModel model = Model("");
  const auto plan = PlanAnswer(model.served, "p", {}, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->grammar, nullptr);
  EXPECT_FALSE(plan->parser.reasons);
  EXPECT_EQ(plan->parser.tools, ToolFormat::kNone);
  EXPECT_FALSE(plan->shows_control_tokens);
}

TEST(AnswerPlan, ConstraintsComeAfterTheReasoning) {
  const TestModel model = Model(kThinks);
  const auto open = PlanAnswer(model.served, "x<think>\n", Schema(), {});
  ASSERT_TRUE(open.ok()) << open.status().ToString();
  EXPECT_TRUE(open->parser.reasoning_open);
  EXPECT_TRUE(Takes(*open, "hm</think>\n\n42"));
  EXPECT_FALSE(Takes(*open, "42"));
  const auto closed = PlanAnswer(model.served, "x<think>\n\n</think>\n\n", Schema(), {});
  ASSERT_TRUE(closed.ok());
  EXPECT_TRUE(Takes(*closed, "42"));
  EXPECT_FALSE(Takes(*closed, "hm</think>42"));
}

TEST(AnswerPlan, CallsAndFormatsTogether) {
  const TestModel model = Model("");
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
  const auto either = PlanAnswer(model.served, "p", Schema(), Use(ToolUse::Choice::kAuto));
  ASSERT_TRUE(either.ok());
  EXPECT_TRUE(Takes(*either, call));
  EXPECT_TRUE(Takes(*either, call + "\n" + call));
  EXPECT_TRUE(Takes(*either, "42"));
  EXPECT_FALSE(Takes(*either, "text"));
  EXPECT_EQ(either->parser.enforced, nullptr);
  const auto required = PlanAnswer(model.served, "p", Schema(), Use(ToolUse::Choice::kRequired));
  ASSERT_TRUE(required.ok());
  EXPECT_TRUE(Takes(*required, call));
  EXPECT_FALSE(Takes(*required, "42"));
  ASSERT_NE(required->parser.enforced, nullptr);
  EXPECT_EQ(required->parser.enforced->calls.size(), 1u);
}

TEST(AnswerPlan, EachFormatEnforcesItsOwn) {
  const struct {
    const char* source;
    const char* call;
  } kCases[] = {
      {"{{ '<|python_tag|>' }}",
       R"({"name": "f", "parameters": {}}; {"name": "f", "parameters": {}})"},
      {"{{ '[TOOL_CALLS]' }}",
       R"([TOOL_CALLS][{"name": "f", "arguments": {}}, {"name": "f", "arguments": {}}])"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.source);
    const TestModel model = Model(c.source);
    const auto plan = PlanAnswer(model.served, "p", {}, Use(ToolUse::Choice::kRequired));
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(Takes(*plan, c.call));
    AnswerParser parser(plan->parser);
    std::vector<AnswerDelta> deltas;
    parser.Push(c.call, &deltas);
    parser.Finish(&deltas);
    EXPECT_EQ(parser.calls(), 2u);
  }
}

}  // namespace
}  // namespace lockstep
