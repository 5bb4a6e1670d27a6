// POST /v1/messages, against what Anthropic's API reference says of requests, events and errors.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/anthropic_messages/endpoint.h"
#include "api/anthropic_messages/messages.h"
#include "api/anthropic_messages/writer.h"
#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::TestModel;

constexpr const char* kUser = R"("messages":[{"role":"user","content":"x"}])";
constexpr const char* kTools =
    R"("tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}])";

class AnthropicTest : public ::testing::Test {
 protected:
  ApiResult Ask(const std::string& fields) {
    body_ = "{" + fields + "}";
    return HandleMessages(Context(), {body_, "", "u", 1, nullptr});
  }
  Json Count(const std::string& fields) {
    body_ = "{" + fields + "}";
    const ApiResult result = HandleCountTokens(Context(), {body_, "", "u", 1, nullptr});
    return Json::parse(std::get<ApiReply>(result).body);
  }
  // "ok", or the message of the error.
  std::string Error(const std::string& fields) {
    const ApiResult result = Ask(fields);
    if (std::holds_alternative<GenerationJob>(result)) return "ok";
    const ApiReply& reply = std::get<ApiReply>(result);
    const Json json = Json::parse(reply.body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(json["type"], "error");
    EXPECT_EQ(json["error"]["type"], "invalid_request_error");
    return json["error"]["message"].get<std::string>();
  }

 private:
  ApiContext Context() { return {std::make_shared<ServedModel>(model_.served), false, nullptr}; }
  TestModel model_;
  std::string body_;
};

TEST_F(AnthropicTest, FieldsAreCheckedByName) {
  const std::string head = std::string(R"("max_tokens":8,)") + kUser + ",";
  const std::string tools = head + kTools + ",";
  const std::pair<std::string, std::string> table[] = {
      {kUser, "'max_tokens'"},
      {R"("max_tokens":8)", "'messages'"},
      {R"("max_tokens":0,)" + std::string(kUser), "'max_tokens'"},
      {head + R"("stop_sequences":["a","b"],"temperature":0.5,"top_k":3,"top_p":0.9)", "ok"},
      {head + R"("stop_sequences":[1])", "'stop_sequences[0]'"},
      {head + R"("stream":"yes")", "'stream'"},
      {head + R"("system":[{"type":"text","text":"s"}],"metadata":{"user_id":"u"})", "ok"},
      {head + R"("system":[{"type":"image"}])", "'system.0.type'"},
      {head + R"("system":5)", "'system'"},
      {head + R"("thinking":{"type":"disabled"})", "ok"},
      {head + R"("thinking":{"type":"enabled","budget_tokens":1024})", "ok"},
      {head + R"("thinking":{"type":"maybe"})", "'thinking.type'"},
      {head + R"("n":2)", "'n'"},
      {tools + R"("tool_choice":{"type":"auto"})", "ok"},
      {tools + R"("tool_choice":{"type":"any","disable_parallel_tool_use":true})", "ok"},
      {tools + R"("tool_choice":{"type":"tool","name":"f"})", "ok"},
      {tools + R"("tool_choice":{"type":"none"})", "ok"},
      {tools + R"("tool_choice":{"type":"tool","name":"g"})", "'tool_choice.name'"},
      {tools + R"("tool_choice":{"type":"x"})", "'tool_choice.type'"},
      {head + R"("tool_choice":{"type":"any"})", "'tool_choice'"},
      {head + R"("tools":[{"name":"f"}])", "'tools.0.input_schema'"},
      {head + R"("tools":[{"type":"web_search_20250305","name":"w"}])", "'tools.0.type'"},
      {R"("max_tokens":8,"messages":[{"role":"system","content":"x"}])", "'messages.0.role'"},
      {R"("max_tokens":8,"messages":[{"role":"user"}])", "'messages.0.content'"},
      {R"("max_tokens":8,"messages":[{"role":"user","content":[{"type":"image"}]}])",
       "'messages.0.content.0.type'"},
      {R"("max_tokens":8,"messages":[{"role":"user","content":[{"type":"text","text":1}]}])",
       "'messages.0.content.0.text'"},
      {R"("max_tokens":8,"messages":[{"role":"user","content":"x"},)"
       R"({"role":"assistant","content":"y"}])",
       "'messages'"},
  };
  for (const auto& [fields, word] : table) {
    const std::string error = Error(fields);
    EXPECT_EQ(error == "ok", word == "ok") << fields << ": " << error;
    if (word == "ok") continue;
    EXPECT_NE(error.find(word), std::string::npos) << error;
  }
}

TEST_F(AnthropicTest, Case42HistoryBecomesTheTemplatesMessages) {
  const auto messages = ReadAnthropicMessages(Json::parse(R"({
    "system":[{"type":"text","text":"be "},{"type":"text","text":"brief"}],
    "messages":[
      {"role":"user","content":[{"type":"text","text":"a "},{"type":"text","text":"riddle"}]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"tool_use","id":"t1","name":"f","input":{"x":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1",
        "content":[{"type":"text","text":"5"}]},{"type":"text","text":"go on"}]}]})"));
  ASSERT_TRUE(messages.ok()) << messages.status().ToString();
  EXPECT_EQ(*messages, Json::parse(R"([
    {"role":"system","content":"be brief"},
    {"role":"user","content":"a riddle"},
    {"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[
      {"id":"t1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},
    {"role":"tool","content":"5","tool_call_id":"t1"},
    {"role":"user","content":"go on"}])"));
}

TEST_F(AnthropicTest, Case55CountTokensIsWhatTheAnswerSays) {
  const std::string fields = std::string(R"("system":"s",)") + kUser + "," + kTools;
  const Json count = Count(fields);
  const ApiResult result = Ask(R"("max_tokens":8,"stream":true,)" + fields);
  const auto& job = std::get<GenerationJob>(result);
  EXPECT_EQ(count["input_tokens"], job.requests[0].prompt.size());
  const std::string begin = job.writer->Begin();
  const Json start = Json::parse(begin.substr(begin.find("data: ") + 6));
  EXPECT_EQ(start["message"]["usage"]["input_tokens"], count["input_tokens"]);
  // System and tools count.
  EXPECT_LT(Count(kUser)["input_tokens"].get<int>(), count["input_tokens"].get<int>());
}

AnthropicAnswerOptions Options(bool stream) {
  AnthropicAnswerOptions options;
  options.unique = "u";
  options.model = "m";
  options.stream = stream;
  options.input_tokens = 7;
  options.parser.reasons = true;
  options.parser.tools = ToolFormat::kTagged;
  return options;
}

std::string Write(const std::string& text, bool stream, GenerationEnd end) {
  AnthropicWriter writer(Options(stream));
  std::string out = stream ? writer.Begin() : "";
  for (size_t i = 0; i < text.size(); i += 5) {
    GenerationEvent event;
    event.text = text.substr(i, 5);
    EXPECT_TRUE(writer.Take(0, std::move(event), &out).ok());
  }
  GenerationEvent last;
  last.end = std::move(end);
  EXPECT_TRUE(writer.Take(0, std::move(last), &out).ok());
  return out + writer.End();
}

GenerationEnd Ended(FinishReason reason, std::string stop = "") {
  GenerationEnd end;
  end.reason = reason;
  end.stop = std::move(stop);
  end.usage = {7, 3, 0};
  return end;
}

constexpr const char* kAll =
    "<think>hm</think>\n\nI "
    "call.\n<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":[1]}}</tool_call>";

TEST_F(AnthropicTest, Case55EventsComeInOrder) {
  const std::string out = Write(kAll, true, Ended(FinishReason::kStop));
  std::vector<std::string> names;
  Json blocks = Json::array();
  Json last;
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find("\n\n", at);
    const std::string event = out.substr(at, end - at);
    at = end + 2;
    ASSERT_EQ(event.rfind("event: ", 0), 0u);
    const std::string name = event.substr(7, event.find('\n') - 7);
    const Json data = Json::parse(event.substr(event.find("data: ") + 6));
    EXPECT_EQ(data["type"], name);
    if (names.empty() || names.back() != name) names.push_back(name);
    if (name == "content_block_start") {
      EXPECT_EQ(data["index"], blocks.size());
      blocks.push_back(data["content_block"]);
    }
    if (name == "content_block_delta") {
      EXPECT_EQ(data["index"], blocks.size() - 1);
      const Json& delta = data["delta"];
      Json& block = blocks.back();
      if (delta["type"] == "text_delta") {
        block["text"] = block["text"].get<std::string>() + delta["text"].get<std::string>();
      } else if (delta["type"] == "thinking_delta") {
        block["thinking"] =
            block["thinking"].get<std::string>() + delta["thinking"].get<std::string>();
      } else {
        ASSERT_EQ(delta["type"], "input_json_delta");
        block["partial"] = block.value("partial", "") + delta["partial_json"].get<std::string>();
      }
    }
    if (name == "message_delta") last = data;
  }
  const std::vector<std::string> block = {"content_block_start", "content_block_delta",
                                          "content_block_stop"};
  std::vector<std::string> expected = {"message_start"};
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), block.begin(), block.end());
  expected.insert(expected.end(), {"message_delta", "message_stop"});
  EXPECT_EQ(names, expected);
  EXPECT_EQ(last["delta"]["stop_reason"], "tool_use");
  EXPECT_EQ(last["usage"]["output_tokens"], 3);

  const Json whole = Json::parse(Write(kAll, false, Ended(FinishReason::kStop)));
  ASSERT_EQ(whole["content"].size(), 3u);
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(whole["content"][0], blocks[0]);
  EXPECT_EQ(whole["content"][1], blocks[1]);
  EXPECT_EQ(whole["content"][1]["text"], "I call.");
  EXPECT_EQ(whole["content"][2]["input"], Json::parse(blocks[2]["partial"].get<std::string>()));
  EXPECT_EQ(whole["content"][2]["name"], "f");
  EXPECT_EQ(whole["usage"], Json::parse(R"({"input_tokens":7,"output_tokens":3})"));
}

TEST_F(AnthropicTest, Case38StopReasons) {
  const auto reason = [](const std::string& text, GenerationEnd end) {
    const Json json = Json::parse(Write(text, false, std::move(end)));
    return json["stop_reason"].get<std::string>() + "/" + json["stop_sequence"].dump();
  };
  EXPECT_EQ(reason("hi", Ended(FinishReason::kStop)), "end_turn/null");
  EXPECT_EQ(reason("hi", Ended(FinishReason::kStop, "END")), "stop_sequence/\"END\"");
  EXPECT_EQ(reason("hi", Ended(FinishReason::kLength)), "max_tokens/null");
  EXPECT_EQ(reason(kAll, Ended(FinishReason::kStop)), "tool_use/null");
  EXPECT_EQ(reason(kAll, Ended(FinishReason::kLength)), "max_tokens/null");
}

TEST_F(AnthropicTest, ErrorsHaveTheirOwnShape) {
  const std::string event = AnthropicErrorEvent(Unavailable("gone"));
  EXPECT_EQ(event,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
            "\"message\":\"gone\"}}\n\n");
  const ApiReply reply = AnthropicErrorReply(NotFound("no such model", "model"));
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(Json::parse(reply.body)["error"]["type"], "not_found_error");
}

}  // namespace
}  // namespace lockstep
