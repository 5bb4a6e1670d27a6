#include "text/answer_parser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep {
namespace {

// An answer as a client joins it.
struct Joined {
  std::string reasoning;
  std::string content;
  std::vector<std::pair<std::string, std::string>> calls;
  bool operator==(const Joined&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Joined& joined) {
  out << "reasoning=\"" << joined.reasoning << "\" content=\"" << joined.content << "\"";
  for (const auto& [name, arguments] : joined.calls) out << " " << name << "(" << arguments << ")";
  return out;
}

void Join(const std::vector<AnswerDelta>& deltas, Joined* joined) {
  for (const AnswerDelta& delta : deltas) {
    EXPECT_FALSE(delta.text.empty());
    switch (delta.kind) {
      case AnswerDelta::Kind::kReasoning:
        joined->reasoning += delta.text;
        break;
      case AnswerDelta::Kind::kContent:
        joined->content += delta.text;
        break;
      case AnswerDelta::Kind::kCall:
        joined->calls.emplace_back(delta.text, "");
        break;
      case AnswerDelta::Kind::kArguments:
        ASSERT_FALSE(joined->calls.empty());
        joined->calls.back().second += delta.text;
        break;
    }
  }
}

Joined Parse(const AnswerParserOptions& options, const std::vector<std::string>& pieces) {
  AnswerParser parser(options);
  Joined joined;
  std::vector<AnswerDelta> deltas;
  for (const std::string& piece : pieces) {
    parser.Push(piece, &deltas);
    Join(deltas, &joined);
    deltas.clear();
  }
  parser.Finish(&deltas);
  Join(deltas, &joined);
  EXPECT_EQ(parser.calls(), joined.calls.size());
  return joined;
}

// However it is cut: whole, in two at every byte, and in pieces of every size.
void Expect(const AnswerParserOptions& options, const std::string& text, const Joined& expected) {
  SCOPED_TRACE(text);
  ASSERT_EQ(Parse(options, {text}), expected);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    ASSERT_EQ(Parse(options, {text.substr(0, cut), text.substr(cut)}), expected) << cut;
  }
  for (size_t size = 1; size <= 9; ++size) {
    std::vector<std::string> pieces;
    for (size_t i = 0; i < text.size(); i += size) pieces.push_back(text.substr(i, size));
    ASSERT_EQ(Parse(options, pieces), expected) << size;
  }
}

AnswerParserOptions Tools(ToolFormat format) {
  AnswerParserOptions options;
  options.tools = format;
  return options;
}

AnswerParserOptions Reasoning(bool open, ToolFormat format = ToolFormat::kNone) {
  AnswerParserOptions options = Tools(format);
  options.reasons = true;
  options.reasoning_open = open;
  return options;
}

TEST(AnswerParser, PlainTextIsContent) {
  const std::string text = " a <think> b </think> <tool_call>{\"name\":\"f\"}</tool_call> \n";
  Expect({}, text, {"", text, {}});
  Expect({}, "", {});
}

TEST(AnswerParser, Case40Reasoning) {
  // The template has opened it.
  Expect(Reasoning(true), "weighing it</think>Answer.", {"weighing it", "Answer.", {}});
  Expect(Reasoning(true), "\na < b, </thin\n\n</think>\n\nAnswer.\n",
         {"a < b, </thin", "Answer.\n", {}});
  Expect(Reasoning(true), "cut in the mid", {"cut in the mid", "", {}});
  Expect(Reasoning(true), "cut at its end </thi", {"cut at its end </thi", "", {}});
  // It opens itself, or does not reason.
  Expect(Reasoning(false), "<think>\nhm\n</think>\n\nYes", {"hm", "Yes", {}});
  Expect(Reasoning(false), "\n<think></think>Yes", {"", "Yes", {}});
  Expect(Reasoning(false), "No. <think>x</think>", {"", "No. <think>x</think>", {}});
  Expect(Reasoning(false), "  <thin", {"", "  <thin", {}});
  // Only the first tags count: the rest is what the user wanted to see.
  Expect(Reasoning(false), "<think>a</think>Use `<think>` and </think>.",
         {"a", "Use `<think>` and </think>.", {}});
}

TEST(AnswerParser, Case40ACallWithinReasoningIsNotLost) {
  const auto options = Reasoning(true, ToolFormat::kTagged);
  Expect(options, "I call <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
         {"I call", "", {{"f", "{}"}}});
  Expect(options, "no <tool_call> here</think>text", {"no <tool_call> here", "text", {}});
  Expect(options, "x</think>\n\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>",
         {"x", "", {{"f", "{}"}}});
}

// As the model cards of Hermes 2 Pro and Qwen 2.5 show them.
TEST(AnswerParser, TaggedCalls) {
  const auto options = Tools(ToolFormat::kTagged);
  const std::string a =
      "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a.txt\", \"text\": "
      "\"</tool\\u0041 {\\\"}\"}}\n</tool_call>";
  const std::string args = R"({"path": "a.txt", "text": "</tool\u0041 {\"}"})";
  Expect(options, a, {"", "", {{"write_file", args}}});
  Expect(options, a + "\n" + a + "\n", {"", "", {{"write_file", args}, {"write_file", args}}});
  Expect(options, "I will.\n" + a, {"", "I will.", {{"write_file", args}}});
  Expect(options, a + "\n\nDone.", {"", "Done.", {{"write_file", args}}});
  // The end tag may be missing where the answer ends.
  Expect(options, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}",
         {"", "", {{"f", "{\"a\":1}"}}});
  // Arguments as text, under another name, or none.
  Expect(options, R"(<tool_call>{"name":"f","arguments":"{\"a\":1}"}</tool_call>)",
         {"", "", {{"f", "{\"a\":1}"}}});
  Expect(options, R"(<tool_call>{"name":"f"}</tool_call>)", {"", "", {{"f", "{}"}}});
}

TEST(AnswerParser, ACallThatDoesNotParseStaysInTheContent) {
  const auto options = Tools(ToolFormat::kTagged);
  for (const std::string& text : std::vector<std::string>{
           "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": }}</tool_call>",
           "<tool_call>not json</tool_call>",
           "<tool_call>{\"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": 5}</tool_call>",
           "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": {}} and more</tool_call>",
           "<tool_call>{\"name\": \"f\", \"argum",
           "<tool_call>\n",
           "see <tool_ca",
           "<tool_call><tool_call><tool_call>",
           "<tool_call>{\"name\":\"f\",\"arguments\":" + std::string(3000, '[') + "</tool_call>",
       }) {
    Expect(options, text, {"", text, {}});
  }
  // What follows is looked through all the same.
  Expect(options, "<tool_call> or <tool_call>{\"name\":\"f\"}</tool_call>",
         {"", "<tool_call> or", {{"f", "{}"}}});
}

TEST(AnswerParser, OneCallAlone) {
  AnswerParserOptions options = Tools(ToolFormat::kTagged);
  options.one_call = true;
  const std::string call = "<tool_call>{\"name\":\"f\"}</tool_call>";
  Expect(options, call + call, {"", "", {{"f", "{}"}}});
}

// Meta's "Llama 3.1 prompt formats".
TEST(AnswerParser, Llama3Calls) {
  const auto options = Tools(ToolFormat::kLlama3);
  Expect(options, R"({"name": "f", "parameters": {"a": "b"}})", {"", "", {{"f", R"({"a": "b"})"}}});
  Expect(options,
         R"(<|python_tag|>{"name":"f","parameters":{}}; {"name":"g","parameters":{"x":1}})",
         {"", "", {{"f", "{}"}, {"g", "{\"x\":1}"}}});
  Expect(options, R"({"a": "json answer"})", {"", R"({"a": "json answer"})", {}});
  Expect(options, R"(Like {"name": "f"})", {"", R"(Like {"name": "f"})", {}});
  Expect(options, " \n", {"", " \n", {}});
}

// The templates of Mistral 7B v0.3 and of Mistral Small 3.2.
TEST(AnswerParser, MistralCalls) {
  const auto options = Tools(ToolFormat::kMistral);
  Expect(options,
         R"([TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}])",
         {"", "", {{"f", R"({"a": 1})"}, {"g", "{}"}}});
  Expect(options, R"([TOOL_CALLS]f[ARGS]{"a": "[TOOL]"}[TOOL_CALLS]g{"b": 2})",
         {"", "", {{"f", R"({"a": "[TOOL]"})"}, {"g", R"({"b": 2})"}}});
  Expect(options, "[TOOL_CALLS]oops", {"", "[TOOL_CALLS]oops", {}});
}

// Meta's "Llama 4" and Liquid's "LFM2" cards.
TEST(AnswerParser, PythonicCalls) {
  const auto options = Tools(ToolFormat::kPythonic);
  Expect(options, R"([f(a=1, b="x, \"y\"", c=[True, None, {'k': -2.5}]), g()])",
         {"", "", {{"f", R"({"a":1,"b":"x, \"y\"","c":[true,null,{"k":-2.5}]})"}, {"g", "{}"}}});
  Expect(options, "<|tool_call_start|>[f(a='it\\'s')]<|tool_call_end|>Done",
         {"", "Done", {{"f", R"({"a":"it's"})"}}});
  for (const char* text : {"[1, 2]", "[f(a=b)]", "[f(1)]", "[f(a=1]", "[f(a=1)] and", "[see](x)"}) {
    Expect(options, text, {"", text, {}});
  }
}

std::shared_ptr<const EnforcedCalls> Enforced() {
  EnforcedCalls calls;
  calls.calls = {{"f", "<tool_call>\n{\"name\": \"f\", \"arguments\": ", "}\n</tool_call>"},
                 {"fg", "<tool_call>\n{\"name\": \"fg\", \"arguments\": ", "}\n</tool_call>"}};
  calls.separator = "\n";
  return std::make_shared<EnforcedCalls>(calls);
}

TEST(AnswerParser, EnforcedCallsAreShownAsTheyCome) {
  AnswerParserOptions options = Reasoning(false, ToolFormat::kTagged);
  options.enforced = Enforced();
  const std::string f =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":\"}\\\"\"}}\n</tool_call>";
  const std::string fg = "<tool_call>\n{\"name\": \"fg\", \"arguments\": {}}\n</tool_call>";
  Expect(options, f, {"", "", {{"f", R"({"a":"}\""})"}}});
  Expect(options, "<think>x</think>\n\n" + f + "\n" + fg,
         {"x", "", {{"f", R"({"a":"}\""})"}, {"fg", "{}"}}});
  // Cut by the length: what there is of the arguments.
  Expect(options, f.substr(0, f.find("a\"") + 1), {"", "", {{"f", "{\"a"}}});
  Expect(options, f + "\n<tool_call>\n{\"name\": \"f", {"", "", {{"f", R"({"a":"}\""})"}}});
  Expect(options, "<tool_ca", {});
  // In pieces: the name first, then arguments as they come.
  AnswerParser parser(options);
  std::vector<AnswerDelta> deltas;
  parser.Push("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a", &deltas);
  ASSERT_EQ(deltas.size(), 2u);
  EXPECT_EQ(deltas[0].kind, AnswerDelta::Kind::kCall);
  EXPECT_EQ(deltas[1].text, "{\"a");
}

TEST(AnswerParser, EnforcedCallsInAList) {
  EnforcedCalls calls;
  calls.open = "[TOOL_CALLS][";
  calls.calls = {{"f", "{\"name\": \"f\", \"arguments\": ", "}"}};
  calls.separator = ", ";
  calls.close = "]";
  AnswerParserOptions options = Tools(ToolFormat::kMistral);
  options.enforced = std::make_shared<EnforcedCalls>(calls);
  Expect(options,
         R"([TOOL_CALLS][{"name": "f", "arguments": {}}, {"name": "f", "arguments": {"x":[1]}}])",
         {"", "", {{"f", "{}"}, {"f", R"({"x":[1]})"}}});
}

TEST(AnswerParser, LinearInTheText) {
  // Quadratic work over this would take minutes.
  AnswerParser parser(Reasoning(true, ToolFormat::kTagged));
  std::vector<AnswerDelta> deltas;
  for (int i = 0; i < 200000; ++i) {
    parser.Push(i % 7 == 0 ? "<tool" : "</thin", &deltas);
    deltas.clear();
  }
  std::string call = "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"";
  parser.Push("</think>" + call, &deltas);
  for (int i = 0; i < 200000; ++i) parser.Push("xxxxx", &deltas);
  parser.Push("\"}}</tool_call>", &deltas);
  EXPECT_EQ(parser.calls(), 1u);
}

TEST(AnswerFormat, FromTheTemplate) {
  EXPECT_EQ(ToolFormatOf("... <tool_call>\n{\"name\": ... ...</tool_call>"), ToolFormat::kTagged);
  EXPECT_EQ(ToolFormatOf("<tool_call>\n<function=x>"), ToolFormat::kNone);
  EXPECT_EQ(ToolFormatOf("{{ '[TOOL_CALLS] [' }}"), ToolFormat::kMistral);
  EXPECT_EQ(ToolFormatOf("<|python_tag|>"), ToolFormat::kLlama3);
  EXPECT_EQ(ToolFormatOf("<|im_start|>"), ToolFormat::kTagged);
  EXPECT_TRUE(Reasons("{% if '</think>' in content %}"));
  EXPECT_FALSE(Reasons("<|im_start|>"));
  EXPECT_TRUE(OpensReasoning("<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(OpensReasoning("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
}

}  // namespace
}  // namespace lockstep
