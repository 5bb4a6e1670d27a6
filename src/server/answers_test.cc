#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "api/json.h"
#include "api/testing/testing.h"
#include "server/testing/raw_client.h"
#include "server/testing/stack.h"

namespace lockstep {
namespace {

using testing::Bytes;
using testing::Joined;
using testing::ModelOptions;
using testing::Post;
using testing::RawResponse;
using testing::Stack;

TEST(Cases, C01_StreamedCharactersAreWhole) {
  ModelOptions options;
  options.script = Bytes("x \U0001F600\U0001F999\u6F22\u5B57 e\u0301");
  Stack stack(options);
  const Json whole = stack.Complete(R"("prompt":"a")");
  EXPECT_EQ(whole["choices"][0]["text"], "x \U0001F600\U0001F999\u6F22\u5B57 e\u0301");
  EXPECT_EQ(Joined(stack.Stream(R"("prompt":"a")")), whole["choices"][0]["text"]);
}

TEST(Cases, C03_ALoneByteIsReplacedAndKeptInLogprobs) {
  ModelOptions options;
  options.script = Bytes(
      "a\xA1"
      "b");
  Stack stack(options);
  const RawResponse chat = Post(stack.port(), "/v1/chat/completions",
                                R"({"messages":[{"role":"user","content":"x"}],"logprobs":true})");
  const Json choice = Json::parse(chat.body)["choices"][0];
  EXPECT_EQ(choice["message"]["content"],
            "a\uFFFD"
            "b");
  EXPECT_EQ(choice["logprobs"]["content"][1]["bytes"], Json::array({0xA1}));
  EXPECT_EQ(choice["logprobs"]["content"].size(), 3u);
}

TEST(Cases, C04_NothingOfAStopStringIsStreamed) {
  ModelOptions options;
  options.script = Bytes(" ABC DEFGHIJ KLM");
  Stack stack(options);
  for (const char* extra : {"", R"(,"logprobs":2)"}) {
    const std::string fields = R"("prompt":"a","stop":["DEFGHIJ"])" + std::string(extra);
    const RawResponse stream = stack.Stream(fields);
    EXPECT_EQ(Joined(stream), " ABC ");
    EXPECT_EQ(stream.body.find("\"D\""), std::string::npos);
    const Json whole = stack.Complete(fields);
    EXPECT_EQ(whole["choices"][0]["text"], " ABC ");
    EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
    if (*extra == 0) continue;
    EXPECT_EQ(DumpJson(whole["choices"][0]["logprobs"]["tokens"]), R"([" ","A","B","C"," "])");
  }
}

TEST(Cases, C06_StopIsNotShown) {
  ModelOptions options;
  options.script = Bytes("1 2 3 4 5 6 7 8");
  Stack stack(options);
  EXPECT_EQ(stack.Complete(R"("prompt":"a","stop":["7"])")["choices"][0]["text"], "1 2 3 4 5 6 ");
  for (const char* stop : {"null", "[]", "\"\""}) {
    EXPECT_EQ(stack.Complete(R"("prompt":"a","stop":)" + std::string(stop))["choices"][0]["text"],
              "1 2 3 4 5 6 7 8");
  }
}

TEST(Cases, C11_OverflowIsOneErrorInAllModes) {
  Stack stack;
  const auto prompt = [](size_t tokens) {
    return R"("prompt":")" + std::string(tokens, 'a') + "\"";
  };
  for (const size_t tokens : {256, 257}) {
    std::string bodies[2];
    for (const bool stream : {false, true}) {
      const RawResponse response =
          Post(stack.port(), "/v1/completions",
               "{" + prompt(tokens) + (stream ? R"(,"stream":true})" : "}"));
      EXPECT_EQ(response.status, 400);
      EXPECT_EQ(response.headers.at("content-type"), "application/json");
      EXPECT_EQ(Json::parse(response.body)["error"]["code"], "context_length_exceeded");
      bodies[stream ? 1 : 0] = response.body;
    }
    EXPECT_EQ(bodies[0], bodies[1]);
  }
  const Json last = stack.Complete(prompt(255) + R"(,"ignore_eos":true)");
  EXPECT_EQ(last["usage"]["completion_tokens"], 1);
  EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
}

TEST(Cases, C15_SeedsAreHeeded) {
  Stack stack;
  const auto text = [&](const std::string& fields) {
    return DumpJson(stack.Complete(R"("prompt":"ab","max_tokens":24,"ignore_eos":true)" +
                                   fields)["choices"][0]["text"]);
  };
  const std::string seeded = text(R"(,"seed":42)");
  EXPECT_EQ(text(R"(,"seed":42)"), seeded);
  EXPECT_EQ(text(R"(,"seed":0)"), text(R"(,"seed":0)"));
  EXPECT_NE(text(R"(,"seed":0)"), seeded);
  EXPECT_NE(text(""), text(""));
}

TEST(Cases, C17_NeighboursChangeNoByte) {
  ModelOptions options;
  options.engine.max_rows = 4;
  Stack stack(options);
  const auto body = [](int i) {
    return R"({"prompt":")" + std::string(static_cast<size_t>(1 + i * 7 % 90), 'a' + i % 26) +
           R"(","max_tokens":40,"ignore_eos":true,"logprobs":2,"seed":)" + std::to_string(i) + "}";
  };
  std::vector<std::string> alone;
  const auto choices = [&](int i) {
    const RawResponse response = Post(stack.port(), "/v1/completions", body(i));
    return response.status == 200 ? DumpJson(Json::parse(response.body)["choices"]) : "failed";
  };
  for (int i = 0; i < 20; ++i) alone.push_back(choices(i));
  std::vector<std::string> together(20);
  std::vector<std::thread> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back([&, i] { together[i] = choices(i); });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(together, alone);
}

TEST(Cases, C23_ChoicesHaveTheirOwnIndexAndText) {
  Stack stack;
  const std::string fields =
      R"({"messages":[{"role":"user","content":"x"}],"n":2,"seed":4242,"temperature":1.9,)"
      R"("logprobs":true,"top_logprobs":1,"max_tokens":8,"ignore_eos":true)";
  const RawResponse stream =
      Post(stack.port(), "/v1/chat/completions",
           fields + R"(,"stream":true,"stream_options":{"include_usage":true}})");
  Json whole = Json::parse(Post(stack.port(), "/v1/chat/completions", fields + "}").body);
  ASSERT_EQ(whole["choices"].size(), 2u);
  EXPECT_NE(whole["choices"][0]["message"]["content"], whole["choices"][1]["message"]["content"]);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Joined(stream, i), whole["choices"][i]["message"]["content"]);
    EXPECT_EQ(whole["choices"][i]["finish_reason"], "length");
  }
  EXPECT_EQ(whole["usage"]["completion_tokens"], 16);
  Json usage = Json::parse(stream.events[stream.events.size() - 2]);
  EXPECT_EQ(usage["choices"], Json::array());
  // The second of the two requests found the first one's prompt in the cache.
  for (Json* each : {&usage, &whole}) (*each)["usage"].erase("prompt_tokens_details");
  EXPECT_EQ(usage["usage"], whole["usage"]);
}

TEST(Cases, C22_EchoJoinsToTheText) {
  Stack stack;
  const std::string fields =
      R"("prompt":"\n1. Carol \u00e9","max_tokens":5,"temperature":0,"logprobs":1,"echo":true)";
  const Json choice = stack.Complete(fields)["choices"][0];
  EXPECT_EQ(Joined(stack.Stream(fields)), choice["text"]);
  const Json& logprobs = choice["logprobs"];
  std::string joined;
  size_t offset = 0;
  ASSERT_EQ(logprobs["tokens"].size(), logprobs["text_offset"].size());
  ASSERT_EQ(logprobs["tokens"].size(), logprobs["token_logprobs"].size());
  ASSERT_EQ(logprobs["tokens"].size(), logprobs["top_logprobs"].size());
  for (size_t i = 0; i < logprobs["tokens"].size(); ++i) {
    const std::string token = logprobs["tokens"][i];
    EXPECT_EQ(logprobs["text_offset"][i], offset);
    EXPECT_EQ(logprobs["token_logprobs"][i].is_null(), i == 0);
    joined += token;
    for (const char c : token) offset += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  }
  EXPECT_EQ(joined, choice["text"]);
  EXPECT_TRUE(joined.starts_with("\n1. Carol \u00E9"));
  // The prompt alone.
  const Json scored =
      stack.Complete(R"("prompt":"abc","max_tokens":0,"logprobs":0,"echo":true)")["choices"][0];
  EXPECT_EQ(scored["text"], "abc");
  EXPECT_EQ(scored["logprobs"]["tokens"].size(), 3u);
}

}  // namespace
}  // namespace lockstep
