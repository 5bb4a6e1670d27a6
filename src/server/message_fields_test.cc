// Reasoning, tool calls and constraints from the HTTP request to its answer, whole and streamed.
#include <gtest/gtest.h>

#include <string>

#include "server/testing/stack.h"

namespace lockstep::testing {
namespace {

constexpr const char* kThinks =
    "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if '</think>' in 'x' %}{% endif %}"
    "<|im_start|>assistant\n<think>\n";
constexpr const char* kTools =
    R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
    R"("properties":{"n":{"type":"integer","minimum":0,"maximum":9}},"required":["n"]}}}])";
constexpr const char* kUser = R"("messages":[{"role":"user","content":"x"}])";

ModelOptions Says(const std::string& text, const std::string& chat_template = "") {
  ModelOptions options;
  options.script = Bytes(text);
  options.fake.max_context = 4096;  // a token a byte: room for the tools
  options.chat_template = chat_template;
  return options;
}

Json Ask(Stack& stack, const std::string& fields) {
  const RawResponse response = Post(stack.port(), "/v1/chat/completions", "{" + fields + "}");
  EXPECT_EQ(response.status, 200) << response.body;
  return Json::parse(response.body)["choices"][0];
}

// The strings of a stream's deltas, joined by field, and how it finished.
Json AskStream(Stack& stack, const std::string& fields) {
  const RawResponse response =
      Post(stack.port(), "/v1/chat/completions", "{\"stream\":true," + fields + "}");
  EXPECT_EQ(response.status, 200) << response.body;
  Json joined = Json::object();
  for (const std::string& event : response.events) {
    if (event == "[DONE]") break;
    const Json choice = Json::parse(event)["choices"][0];
    for (const auto& [key, value] : choice["delta"].items()) {
      if (value.is_string()) {
        joined[key] = joined.value(key, "") + value.get<std::string>();
      } else if (key == "tool_calls") {
        const Json& function = value[0]["function"];
        joined["name"] = joined.value("name", "") + function.value("name", "");
        joined["arguments"] = joined.value("arguments", "") + function.value("arguments", "");
      }
    }
    if (!choice["finish_reason"].is_null()) joined["finish_reason"] = choice["finish_reason"];
  }
  return joined;
}

TEST(MessageFields, Case40ReasoningThatTheTemplateOpened) {
  Stack stack(Says("weighing it</think>Answer.", kThinks));
  const Json whole = Ask(stack, kUser);
  EXPECT_EQ(whole["message"]["reasoning_content"], "weighing it");
  EXPECT_EQ(whole["message"]["content"], "Answer.");
  EXPECT_EQ(whole["finish_reason"], "stop");
  const Json stream = AskStream(stack, kUser);
  EXPECT_EQ(stream["reasoning_content"], "weighing it");
  EXPECT_EQ(stream["content"], "Answer.");
}

TEST(MessageFields, Case40WithoutATemplateThatReasonsItIsText) {
  Stack stack(Says("a <think>b</think> c"));
  EXPECT_EQ(Ask(stack, kUser)["message"]["content"], "a <think>b</think> c");
}

TEST(MessageFields, Case37And38ACallOfTheModelsOwnAccord) {
  Stack stack(Says("<tool_call>{\"name\":\"f\",\"arguments\":{\"n\":1}}</tool_call>"));
  const std::string fields = std::string(kUser) + "," + kTools;
  const Json whole = Ask(stack, fields);
  EXPECT_EQ(whole["finish_reason"], "tool_calls");
  EXPECT_TRUE(whole["message"]["content"].is_null());
  EXPECT_EQ(whole["message"]["tool_calls"][0]["function"]["arguments"], "{\"n\":1}");
  const Json stream = AskStream(stack, fields);
  EXPECT_EQ(stream["finish_reason"], "tool_calls");
  EXPECT_EQ(stream["name"], "f");
  EXPECT_EQ(stream["arguments"], "{\"n\":1}");
  // Without tools it is text.
  EXPECT_EQ(Ask(stack, kUser)["finish_reason"], "stop");
}

TEST(MessageFields, RequiredCallsAreEnforced) {
  // What the fake model says is noise; only the grammar makes a call of it.
  Stack stack(Says(""));
  for (int seed = 0; seed < 5; ++seed) {
    const std::string fields = std::string(kUser) + "," + kTools +
                               R"(,"tool_choice":"required","parallel_tool_calls":false,"seed":)" +
                               std::to_string(seed);
    const Json whole = Ask(stack, fields);
    ASSERT_EQ(whole["message"].value("tool_calls", Json()).size(), 1u) << whole;
    const std::string arguments = whole["message"]["tool_calls"][0]["function"]["arguments"];
    const Json stream = AskStream(stack, fields);
    EXPECT_EQ(stream["arguments"], arguments);
    EXPECT_EQ(stream["finish_reason"], whole["finish_reason"]);
    if (whole["finish_reason"] == "tool_calls") {
      const int n = Json::parse(arguments)["n"];
      EXPECT_TRUE(n >= 0 && n <= 9);
    }
  }
}

TEST(MessageFields, ConstraintsHoldForNoise) {
  Stack stack(Says(""));
  for (int seed = 0; seed < 5; ++seed) {
    const Json whole = Ask(stack, std::string(kUser) + R"(,"guided_json":{"type":"object",)" +
                                      R"("properties":{"a":{"enum":["x","y"]},)" +
                                      R"("b":{"type":"boolean"}},"required":["a","b"]},"seed":)" +
                                      std::to_string(seed));
    if (whole["finish_reason"] == "length") continue;
    const Json json = Json::parse(whole["message"]["content"].get<std::string>());
    EXPECT_TRUE(json["a"] == "x" || json["a"] == "y");
    EXPECT_TRUE(json["b"].is_boolean());
    EXPECT_EQ(json.size(), 2u);
  }
}

TEST(MessageFields, Case55AnthropicAnswersAndErrors) {
  Stack stack(Says("Hello."));
  const std::string fields = std::string(R"("max_tokens":20,)") + kUser;
  const RawResponse whole = Post(stack.port(), "/v1/messages", "{" + fields + "}");
  ASSERT_EQ(whole.status, 200) << whole.body;
  const Json message = Json::parse(whole.body);
  EXPECT_EQ(message["content"], Json::parse(R"([{"type":"text","text":"Hello."}])"));
  EXPECT_EQ(message["stop_reason"], "end_turn");
  const RawResponse stream = Post(stack.port(), "/v1/messages", "{\"stream\":true," + fields + "}");
  ASSERT_FALSE(stream.events.empty());
  EXPECT_EQ(Json::parse(stream.events.front())["type"], "message_start");
  EXPECT_EQ(Json::parse(stream.events.back())["type"], "message_stop");

  const RawResponse error = Post(stack.port(), "/v1/messages", "{}");
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(Json::parse(error.body)["type"], "error");
  const RawResponse too_long =
      Post(stack.port(), "/v1/messages", R"({"max_tokens":100000,)" + std::string(kUser) + "}");
  EXPECT_EQ(too_long.status, 400);
  EXPECT_EQ(Json::parse(too_long.body)["error"]["type"], "invalid_request_error");
}

}  // namespace
}  // namespace lockstep::testing
