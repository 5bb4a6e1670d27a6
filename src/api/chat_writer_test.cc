#include "api/openai_chat/writer.h"

#include <gtest/gtest.h>

#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::ByteTokenizer;

ChatAnswerOptions Options(bool stream, int32_t choices = 1) {
  ChatAnswerOptions options;
  options.head = {"chatcmpl-u", "", 7, "m", "fp"};
  options.choices = choices;
  options.stream = stream;
  options.tokenizer = ByteTokenizer();
  return options;
}

GenerationEvent Text(std::string text) {
  GenerationEvent event;
  event.text = std::move(text);
  return event;
}

GenerationEvent End(FinishReason reason, Usage usage) {
  GenerationEvent event;
  event.end.emplace();
  event.end->reason = reason;
  event.end->usage = usage;
  return event;
}

TEST(ChatWriter, C54_StreamShape) {
  ChatWriter writer(Options(true));
  std::string out = writer.Begin();
  ASSERT_TRUE(writer.Take(0, Text("h\u00E9"), &out).ok());
  ASSERT_TRUE(writer.Take(0, Text(""), &out).ok());  // nothing to show yet
  ASSERT_TRUE(writer.Take(0, End(FinishReason::kLength, {3, 2, 1}), &out).ok());
  out += writer.End();
  const std::string head =
      R"(data: {"id":"chatcmpl-u","object":"chat.completion.chunk","created":7,"model":"m",)"
      R"("system_fingerprint":"fp","choices":[{"index":0,"delta":)";
  EXPECT_EQ(
      out,
      head +
          R"({"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          head + "{\"content\":\"h\u00E9\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n" +
          head +
          R"({},"logprobs":null,"finish_reason":"length"}]})"
          "\n\ndata: [DONE]\n\n");
}

TEST(ChatWriter, C52_UsageOnlyWhenAsked) {
  ChatAnswerOptions options = Options(true);
  options.include_usage = true;
  ChatWriter writer(options);
  std::string out = writer.Begin();
  EXPECT_NE(out.find("\"usage\":null"), std::string::npos);
  ASSERT_TRUE(writer.Take(0, End(FinishReason::kStop, {3, 2, 1}), &out).ok());
  const std::string end = writer.End();
  EXPECT_NE(end.find(R"("choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,)"
                     R"("total_tokens":5,"prompt_tokens_details":{"cached_tokens":1}}})"),
            std::string::npos)
      << end;
  EXPECT_TRUE(end.ends_with("\n\ndata: [DONE]\n\n"));
}

TEST(ChatWriter, WholeAnswer) {
  ChatWriter writer(Options(false, 2));
  std::string none;
  ASSERT_TRUE(writer.Take(1, Text("b"), &none).ok());
  ASSERT_TRUE(writer.Take(0, Text("a"), &none).ok());
  ASSERT_TRUE(writer.Take(1, End(FinishReason::kStop, {3, 2, 0}), &none).ok());
  ASSERT_TRUE(writer.Take(0, End(FinishReason::kLength, {3, 4, 0}), &none).ok());
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(
      writer.End(),
      R"({"id":"chatcmpl-u","object":"chat.completion","created":7,"model":"m","system_fingerprint":"fp",)"
      R"("choices":[{"index":0,"message":{"role":"assistant","content":"a","refusal":null},)"
      R"("logprobs":null,"finish_reason":"length"},)"
      R"({"index":1,"message":{"role":"assistant","content":"b","refusal":null},)"
      R"("logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":3,"completion_tokens":6,"total_tokens":9,)"
      R"("prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST(ChatWriter, FailureEndsTheAnswer) {
  ChatWriter writer(Options(true));
  std::string out;
  GenerationEvent event = End(FinishReason::kError, {});
  event.end->status = Internal("the row failed");
  EXPECT_EQ(writer.Take(0, std::move(event), &out).message(), "the row failed");
  EXPECT_EQ(writer.Take(0, End(FinishReason::kCancelled, {}), &out).code(), StatusCode::kCancelled);
}

TEST(ChatWriter, LogprobsComeWithTheText) {
  ChatAnswerOptions options = Options(true);
  options.top_logprobs = 0;
  ChatWriter writer(options);
  std::string out;
  GenerationEvent event = Text("");
  event.tokens.push_back({'S', "S", {'S', -1.0f, {}}});
  ASSERT_TRUE(writer.Take(0, event, &out).ok());
  EXPECT_TRUE(out.empty()) << "held back with its text";
  ASSERT_TRUE(writer.Take(0, Text("S"), &out).ok());
  EXPECT_NE(out.find(R"("delta":{"content":"S"},"logprobs":{"content":[{"token":"S",)"
                     R"("logprob":-1.0,"bytes":[83],"top_logprobs":[]}],"refusal":null})"),
            std::string::npos)
      << out;
}

}  // namespace
}  // namespace lockstep
