#include "api/structured_output.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/openai_chat/endpoint.h"
#include "api/openai_completions/endpoint.h"
#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::TestModel;

class StructuredOutputTest : public ::testing::Test {
 protected:
  ApiResult Chat(const std::string& fields) {
    return HandleChatCompletions(
        Context(), Call(R"({"messages":[{"role":"user","content":"x"}],)" + fields + "}"));
  }
  ApiResult Complete(const std::string& fields) {
    return HandleCompletions(Context(), Call(R"({"prompt":"x",)" + fields + "}"));
  }
  static std::string Param(const ApiResult& result) {
    if (std::holds_alternative<GenerationJob>(result)) return "ok";
    const ApiReply& reply = std::get<ApiReply>(result);
    EXPECT_EQ(reply.status, 400) << reply.body;
    return Json::parse(reply.body)["error"]["param"].get<std::string>();
  }

 private:
  ApiContext Context() { return {std::make_shared<ServedModel>(model_.served), false, nullptr}; }
  ApiCall Call(std::string body) {
    body_ = std::move(body);
    return {body_, "", "u", 1, nullptr};
  }
  TestModel model_;
  std::string body_;
};

TEST_F(StructuredOutputTest, EveryFieldConstrains) {
  const std::string schema = R"({"type":"object","properties":{"a":{"type":"integer"}}})";
  for (const std::string& fields : std::vector<std::string>{
           R"("response_format":{"type":"json_object"})",
           R"("response_format":{"type":"json_object","schema":)" + schema + "}",
           R"("response_format":{"type":"json_schema","json_schema":{"name":"r","strict":true,)"
           R"("schema":)" +
               schema + "}}",
           R"("guided_json":)" + schema,
           R"("guided_json":"{\"type\":\"object\"}")",
           R"("guided_regex":"[a-z]{3}")",
           R"("guided_choice":["yes","no"])",
           R"("guided_grammar":"root ::= \"a\" | \"b\"")",
           R"("guided_grammar":"start: \"a\" | \"b\"")",
           R"("grammar":"root ::= \"a\" | \"b\"")",
           R"("json_schema":)" + schema,
           R"("structured_outputs":{"json":)" + schema + "}",
           R"("structured_outputs":{"regex":"a+"})",
           R"("structured_outputs":{"choice":["a"]})",
           R"("structured_outputs":{"grammar":"start: \"a\""})",
           R"("structured_outputs":{"json_object":true})",
       }) {
    for (const bool chat : {true, false}) {
      const ApiResult result = chat ? Chat(fields + ",\"n\":2") : Complete(fields + ",\"n\":2");
      ASSERT_EQ(Param(result), "ok") << fields;
      for (const auto& request : std::get<GenerationJob>(result).requests) {
        EXPECT_NE(request.grammar, nullptr) << fields;
      }
    }
  }
  for (const char* fields : {R"("response_format":{"type":"text"})", R"("guided_json":null)"}) {
    const ApiResult result = Chat(fields);
    ASSERT_EQ(Param(result), "ok");
    EXPECT_EQ(std::get<GenerationJob>(result).requests[0].grammar, nullptr);
  }
}

TEST_F(StructuredOutputTest, Case24WhatCannotBeEnforcedIsRefusedByName) {
  const std::string head = R"("response_format":{"type":"json_schema","json_schema":{"schema":)";
  const std::string path = "response_format.json_schema.schema";
  const std::pair<std::string, std::string> table[] = {
      {head + R"({"not":{}}}})", path + ".not"},
      {head + R"({"properties":{"a":{"uniqueItems":true}}}}})", path + ".properties.a.uniqueItems"},
      {head + R"({"properties":{"a":{"format":"x"}}}}})", path + ".properties.a.format"},
      {head + R"(5}})", path},
      {head + R"(false}})", path},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"r"}})", path},
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"strict":1,"schema":{}}})",
       "strict"},
      {R"("response_format":{"type":"grammar"})", "response_format.type"},
      {R"("response_format":{"type":5})", "response_format.type"},
      {R"("response_format":"json")", "response_format"},
      {R"("guided_json":5)", "guided_json"},
      {R"("guided_json":"{")", "guided_json"},
      {R"("guided_json":"[]")", "guided_json"},
      {R"("guided_regex":"(?<=x)*")", "guided_regex"},
      {R"("guided_regex":["a"])", "guided_regex"},
      {R"("guided_choice":"a")", "guided_choice"},
      {R"("guided_choice":[])", "guided_choice"},
      {R"("guided_choice":["a",1])", "guided_choice[1]"},
      {R"("guided_grammar":"root ::= x")", "guided_grammar"},
      {R"("guided_regex":"a","guided_choice":["a"])", "guided_choice"},
      {R"("guided_regex":"a","response_format":{"type":"json_object"})", "guided_regex"},
      {R"("guided_whitespace_pattern":"x")", "guided_whitespace_pattern"},
      {R"("structured_outputs":{})", "structured_outputs"},
      {R"("structured_outputs":[])", "structured_outputs"},
      {R"("structured_outputs":{"regex":"a","choice":["a"]})", "structured_outputs.choice"},
      {R"("structured_outputs":{"structural_tag":"x"})", "structural_tag"},
      {R"("structured_outputs":{"json":{"contains":{}}})", "structured_outputs.json.contains"},
  };
  for (const auto& [fields, param] : table) {
    EXPECT_EQ(Param(Chat(fields)), param) << fields;
    EXPECT_EQ(Param(Complete(fields)), param) << fields;
  }
}

TEST_F(StructuredOutputTest, Case33DeepOrLargeIsRefused) {
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += R"({"items":)";
  const std::string schema = deep + "{}" + std::string(10000, '}');
  EXPECT_NE(Param(Chat(R"("guided_json":)" + schema)), "ok");
  EXPECT_EQ(Param(Chat(R"("guided_grammar":"root ::= )" + std::string(60000, '(') + "\"")),
            "guided_grammar");
  EXPECT_EQ(Param(Chat(R"("guided_regex":")" + std::string(60000, '(') + "\"")), "guided_regex");
  EXPECT_NE(Param(Chat(R"("tools":)" + std::string(3000, '[') + std::string(3000, ']'))), "ok");
}

}  // namespace
}  // namespace lockstep
