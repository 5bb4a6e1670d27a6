#include "api/openai_completions/writer.h"

#include <gtest/gtest.h>

#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::ByteTokenizer;

CompletionAnswerOptions Options(bool stream) {
  CompletionAnswerOptions options;
  options.head = {"cmpl-u", "", 7, "m", "fp"};
  options.stream = stream;
  options.tokenizer = ByteTokenizer();
  return options;
}

GenerationEvent Tokens(const std::string& text, float logprob) {
  GenerationEvent event;
  event.text = text;
  for (const char byte : text) {
    event.tokens.push_back({byte, std::string(1, byte), {byte, logprob, {{byte, logprob}}}});
  }
  return event;
}

GenerationEvent End(int32_t completion_tokens) {
  GenerationEvent event;
  event.end.emplace();
  event.end->usage = {2, completion_tokens, 0};
  return event;
}

TEST(CompletionWriter, WholeAnswer) {
  CompletionWriter writer(Options(false), 1);
  std::string none;
  ASSERT_TRUE(writer.Take(0, Tokens("xy", -1.0f), &none).ok());
  ASSERT_TRUE(writer.Take(0, End(3), &none).ok());
  EXPECT_EQ(
      writer.End(),
      R"({"id":"cmpl-u","object":"text_completion","created":7,"model":"m","system_fingerprint":"fp",)"
      R"("choices":[{"index":0,"text":"xy","logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5,)"
      R"("prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST(CompletionWriter, BestOfPicksTheLikeliestAndCountsAll) {
  CompletionAnswerOptions options = Options(false);
  options.best_of = 3;
  options.n = 2;
  CompletionWriter writer(options, 1);
  std::string none;
  const float logprobs[] = {-3.0f, -1.0f, -2.0f};
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        writer.Take(i, Tokens(std::string(1, static_cast<char>('a' + i)), logprobs[i]), &none)
            .ok());
    ASSERT_TRUE(writer.Take(i, End(1), &none).ok());
  }
  const Json answer = Json::parse(writer.End());
  EXPECT_EQ(answer["choices"][0]["text"], "b");
  EXPECT_EQ(answer["choices"][1]["text"], "c");
  EXPECT_EQ(answer["choices"][1]["index"], 1);
  EXPECT_EQ(answer["choices"].size(), 2u);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 3);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 2);
}

TEST(CompletionWriter, C22_EchoWithLogprobs) {
  for (const bool stream : {false, true}) {
    CompletionAnswerOptions options = Options(stream);
    options.logprobs = 1;
    options.echo = {{"\n", "1"}};
    options.echo_tokens = {{'\n', '1'}};
    CompletionWriter writer(options, 1);
    std::string out;
    GenerationEvent event = Tokens("x", -1.0f);
    // The distribution after each position of the prompt; the last one belongs to the answer.
    event.prompt = {{'1', -0.5f, {{'z', -0.25f}}}, {-1, 0.0f, {}}};
    ASSERT_TRUE(writer.Take(0, event, &out).ok());
    ASSERT_TRUE(writer.Take(0, End(1), &out).ok());
    const std::string whole = writer.End();
    const Json choice =
        Json::parse(stream ? out.substr(6, out.find("\n\n") - 6) : whole)["choices"][0];
    EXPECT_EQ(choice["text"], "\n1x");
    EXPECT_EQ(DumpJson(choice["logprobs"]),
              R"({"tokens":["\n","1","x"],"token_logprobs":[null,-0.5,-1.0],)"
              R"("top_logprobs":[null,{"z":-0.25,"1":-0.5},{"x":-1.0}],"text_offset":[0,1,2]})");
  }
}

TEST(CompletionWriter, StreamNumbersChoicesPromptByPrompt) {
  CompletionAnswerOptions options = Options(true);
  options.n = options.best_of = 2;
  CompletionWriter writer(options, 2);
  std::string out;
  ASSERT_TRUE(writer.Take(3, Tokens("x", -1.0f), &out).ok());
  EXPECT_NE(out.find(R"("index":3,"text":"x")"), std::string::npos);
  EXPECT_EQ(out.find("usage"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
