// Tools, from the request to the answer, over a model that says what the test wrote down or, under
// a grammar, what the grammar leaves open.
#include "api/tool_use.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/openai_chat/endpoint.h"
#include "api/openai_chat/writer.h"
#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::TestModel;

constexpr const char* kTools =
    R"("tools":[{"type":"function","function":{"name":"write_file","parameters":{"type":"object",)"
    R"("properties":{"path":{"enum":["a.txt","b.txt"]}},"required":["path"]}}},)"
    R"({"type":"function","function":{"name":"now"}}])";

// A token a byte: room for the tools.
testing::ModelOptions Roomy() {
  testing::ModelOptions options;
  options.fake.max_context = 4096;
  return options;
}

ApiResult Ask(const TestModel& model, const std::string& fields) {
  const std::string body = R"({"messages":[{"role":"user","content":"x"}],)" + fields + "}";
  const ApiContext context{std::make_shared<ServedModel>(model.served), false, nullptr};
  return HandleChatCompletions(context, {body, "", "u", 1, nullptr});
}

std::string Param(const ApiResult& result) {
  if (std::holds_alternative<GenerationJob>(result)) return "ok";
  const ApiReply& reply = std::get<ApiReply>(result);
  EXPECT_EQ(reply.status, 400) << reply.body;
  return Json::parse(reply.body)["error"]["param"].get<std::string>();
}

std::string Tools(const std::string& fields) { return kTools + ("," + fields); }

TEST(ToolUse, FieldsAreCheckedByName) {
  const TestModel model(Roomy());
  const std::pair<std::string, std::string> table[] = {
      {Tools(R"("tool_choice":"auto")"), "ok"},
      {Tools(R"("tool_choice":"none")"), "ok"},
      {Tools(R"("tool_choice":"required")"), "ok"},
      {Tools(R"("tool_choice":"required","parallel_tool_calls":false)"), "ok"},
      {Tools(R"("tool_choice":{"type":"function","function":{"name":"now"}})"), "ok"},
      {Tools(R"("tool_choice":{"type":"function","function":{"name":"no"}})"), "tool_choice"},
      {Tools(R"("tool_choice":{"type":"function","function":{}})"), "tool_choice.function.name"},
      {Tools(R"("tool_choice":{"type":"function"})"), "tool_choice.function"},
      {Tools(R"("tool_choice":{"type":"allowed_tools"})"), "tool_choice.type"},
      {Tools(R"("tool_choice":{})"), "tool_choice.type"},
      {Tools(R"("tool_choice":"sometimes")"), "tool_choice"},
      {Tools(R"("tool_choice":5)"), "tool_choice"},
      {Tools(R"("parallel_tool_calls":"x")"), "parallel_tool_calls"},
      {R"("tool_choice":"required")", "tool_choice"},
      // What a call must look like and cannot be enforced.
      {R"("tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":)"
       R"({"name":"b","parameters":{"properties":{"x":{"not":{}}}}}}],"tool_choice":"required")",
       "tools[1].function.parameters.properties.x.not"},
      {R"("tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":)"
       R"({"name":"b","parameters":{"properties":{"x":{"format":"no"}}}}}],)"
       R"("tool_choice":{"type":"function","function":{"name":"b"}})",
       "tools[1].function.parameters.properties.x.format"},
  };
  for (const auto& [fields, param] : table) EXPECT_EQ(Param(Ask(model, fields)), param) << fields;
}

TEST(ToolUse, GrammarsOnlyWhereACallIsDemanded) {
  const TestModel model(Roomy());
  const auto grammar = [&](const std::string& fields) {
    ApiResult result = Ask(model, fields);
    return std::get<GenerationJob>(result).requests[0].grammar != nullptr;
  };
  EXPECT_FALSE(grammar(kTools));
  EXPECT_FALSE(grammar(Tools(R"("tool_choice":"none")")));
  EXPECT_TRUE(grammar(Tools(R"("tool_choice":"required")")));
  EXPECT_TRUE(grammar(Tools(R"("response_format":{"type":"json_object"})")));
}

// The answer of a writer to `text` in pieces of `size` bytes.
struct Answer {
  Json whole;   // a message, joined from the stream when it was one
  Json events;  // of a stream
};

Answer Write(const std::string& text, size_t size, bool stream, AnswerParserOptions parser,
             FinishReason reason = FinishReason::kStop) {
  ChatAnswerOptions options;
  options.head = {"chatcmpl-u", "", 7, "m", "fp"};
  options.stream = stream;
  options.tokenizer = testing::ByteTokenizer();
  options.parser = std::move(parser);
  ChatWriter writer(options);
  std::string out = stream ? writer.Begin() : "";
  for (size_t i = 0; i < text.size(); i += size) {
    GenerationEvent event;
    event.text = text.substr(i, size);
    EXPECT_TRUE(writer.Take(0, std::move(event), &out).ok());
  }
  GenerationEvent end;
  end.end.emplace();
  end.end->reason = reason;
  EXPECT_TRUE(writer.Take(0, std::move(end), &out).ok());
  out += writer.End();
  Answer answer;
  if (!stream) {
    answer.whole = Json::parse(out)["choices"][0];
    return answer;
  }
  // As a client of OpenAI's joins the deltas.
  Json message;
  Json reason_json;
  answer.events = Json::array();
  for (size_t at = 0; (at = out.find("data: ", at)) != std::string::npos; at += 6) {
    const std::string data = out.substr(at + 6, out.find("\n\n", at) - at - 6);
    if (data == "[DONE]") break;
    const Json choice = Json::parse(data)["choices"][0];
    answer.events.push_back(choice);
    for (const auto& [key, value] : choice["delta"].items()) {
      if (key == "tool_calls") {
        for (const Json& call : value) {
          const size_t index = call.at("index");
          EXPECT_LE(index, message["tool_calls"].size());
          if (index == message["tool_calls"].size()) {
            EXPECT_FALSE(call.at("id").get<std::string>().empty());
            Json first = call;
            first.erase("index");
            message["tool_calls"].push_back(first);
          } else {
            EXPECT_FALSE(call.contains("id"));
            EXPECT_FALSE(call["function"].contains("name"));
            message["tool_calls"][index]["function"]["arguments"].get_ref<std::string&>() +=
                call["function"]["arguments"].get<std::string>();
          }
        }
      } else if (value.is_string() && message.contains(key) && message[key].is_string() &&
                 key != "role") {
        message[key].get_ref<std::string&>() += value.get<std::string>();
      } else {
        message[key] = value;
      }
    }
    if (!choice["finish_reason"].is_null()) reason_json = choice["finish_reason"];
  }
  if (message["content"] == "" && message.contains("tool_calls")) message["content"] = nullptr;
  answer.whole["message"] = message;
  answer.whole["finish_reason"] = reason_json;
  return answer;
}

void ExpectSame(const Json& a, const Json& b) {
  EXPECT_EQ(a["finish_reason"], b["finish_reason"]);
  for (const char* key : {"role", "content", "reasoning_content", "reasoning", "tool_calls"}) {
    EXPECT_EQ(a["message"].value(key, Json()), b["message"].value(key, Json())) << key;
  }
}

constexpr const char* kTwoCalls =
    "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a.txt\"}}\n</tool_call>\n"
    "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"b.txt\"}}\n</tool_call>";

TEST(ToolUse, Case37And38CallsOfAStream) {
  AnswerParserOptions parser;
  parser.tools = ToolFormat::kTagged;
  const Answer whole = Write(kTwoCalls, 1000, false, parser);
  const Json& calls = whole.whole["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["function"]["arguments"], R"({"path": "a.txt"})");
  EXPECT_EQ(calls[1]["function"]["arguments"], R"({"path": "b.txt"})");
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);
  EXPECT_TRUE(whole.whole["message"]["content"].is_null());
  EXPECT_EQ(whole.whole["finish_reason"], "tool_calls");
  for (size_t size = 1; size < 40; ++size) {
    ExpectSame(Write(kTwoCalls, size, true, parser).whole, whole.whole);
  }
}

TEST(ToolUse, Case38ACutAnswerSaysSo) {
  AnswerParserOptions parser;
  parser.tools = ToolFormat::kTagged;
  const std::string cut = std::string(kTwoCalls).substr(0, 120);
  const Answer whole = Write(cut, 1000, false, parser, FinishReason::kLength);
  EXPECT_EQ(whole.whole["finish_reason"], "length");
  EXPECT_EQ(whole.whole["message"]["tool_calls"].size(), 1u);
  ExpectSame(Write(cut, 3, true, parser, FinishReason::kLength).whole, whole.whole);
}

TEST(ToolUse, Case40ReasoningHasItsOwnField) {
  AnswerParserOptions parser;
  parser.reasons = parser.reasoning_open = true;
  parser.tools = ToolFormat::kTagged;
  const std::string text = std::string("weighing it</think>\n\nAnswer.\n") + kTwoCalls;
  const Answer whole = Write(text, 1000, false, parser);
  EXPECT_EQ(whole.whole["message"]["reasoning_content"], "weighing it");
  EXPECT_EQ(whole.whole["message"]["content"], "Answer.");
  EXPECT_EQ(whole.whole["message"]["tool_calls"].size(), 2u);
  for (const size_t size : {1, 2, 3, 5, 7}) {
    ExpectSame(Write(text, size, true, parser).whole, whole.whole);
  }
}

}  // namespace
}  // namespace lockstep
