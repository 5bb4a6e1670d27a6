#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "api/openai_completions/endpoint.h"
#include "api/openai_completions/request.h"
#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::Bytes;
using testing::TestModel;

class CompletionRequestTest : public ::testing::Test {
 protected:
  ApiResult Call(const std::string& body) {
    ApiContext context;
    context.model = std::make_shared<ServedModel>(model_.served);
    context.http = &http_;
    return HandleCompletions(context, {body, {}, "u", 1});
  }
  std::vector<GenerationRequest> Accepted(const std::string& body) {
    ApiResult result = Call(body);
    if (auto* reply = std::get_if<ApiReply>(&result)) {
      ADD_FAILURE() << reply->body;
      return std::vector<GenerationRequest>(1);
    }
    return std::get<GenerationJob>(std::move(result)).requests;
  }
  std::string Param(const std::string& body) {
    ApiResult result = Call(body);
    const auto* reply = std::get_if<ApiReply>(&result);
    if (reply == nullptr) return "ok";
    EXPECT_EQ(reply->status, 400) << reply->body;
    const Json param = Json::parse(reply->body).at("error").at("param");
    return param.is_null() ? "null" : param.get<std::string>();
  }

  HttpCounters http_;
  TestModel model_;
};

TEST_F(CompletionRequestTest, PromptForms) {
  EXPECT_EQ(Accepted(R"({"prompt":"ab"})")[0].prompt, Bytes("ab"));
  EXPECT_EQ(Accepted(R"({"prompt":[97,98]})")[0].prompt, Bytes("ab"));
  const auto texts = Accepted(R"({"prompt":["a","b"],"n":2})");
  ASSERT_EQ(texts.size(), 4u);
  EXPECT_EQ(texts[1].prompt, Bytes("a"));
  EXPECT_EQ(texts[2].prompt, Bytes("b"));
  EXPECT_EQ(texts[2].sampling.stream, 0u);
  EXPECT_EQ(texts[3].sampling.stream, 1u);
  EXPECT_EQ(Accepted(R"({"prompt":[[97],[98,99]]})")[1].prompt, Bytes("bc"));
}

TEST_F(CompletionRequestTest, C34_HostileIntegersAndIds) {
  for (const char* prompt : {"[-1]",
                             "[999999999]",
                             "[262]",
                             "[1.5]",
                             "[1e30]",
                             "[-2147483649]",
                             "[18446744073709551616]",
                             "[true]",
                             "[[1],[-1]]",
                             "[[]]",
                             "[\"a\",5]",
                             "[[1],\"a\"]",
                             "[null]",
                             "5",
                             "{}",
                             "true",
                             "[[[1]]]",
                             "[[[[]]]]",
                             "[{}]",
                             "[[{}]]"}) {
    const std::string param = Param(R"({"prompt":)" + std::string(prompt) + "}");
    EXPECT_TRUE(param.starts_with("prompt")) << prompt << " -> " << param;
  }
}

TEST_F(CompletionRequestTest, TheItemAtFaultIsNamed) {
  EXPECT_EQ(Param(R"({"prompt":["a",1]})"), "prompt[1]");
  EXPECT_EQ(Param(R"({"prompt":[1,"a"]})"), "prompt[1]");
  EXPECT_EQ(Param(R"({"prompt":[1,-1]})"), "prompt[1]");
  EXPECT_EQ(Param(R"({"prompt":[[1],[1,2,-1]]})"), "prompt[1][2]");
}

TEST_F(CompletionRequestTest, C09_EmptyPrompts) {
  EXPECT_EQ(Param("{}"), "prompt");
  EXPECT_EQ(Param(R"({"prompt":null})"), "prompt");
  EXPECT_EQ(Param(R"({"prompt":""})"), "prompt");
  EXPECT_EQ(Param(R"({"prompt":["a",""]})"), "prompt[1]");
  EXPECT_EQ(Param(R"({"prompt":[]})"), "prompt");
  testing::ModelOptions options;
  options.adds_bos = true;
  TestModel with_bos(options);
  model_.served.tokenizer = with_bos.served.tokenizer;
  EXPECT_EQ(Accepted(R"({"prompt":""})")[0].prompt, std::vector<TokenId>({testing::kBos}));
}

// The longest token has 12 bytes: the context of 256 tokens never holds more than 3072.
TEST_F(CompletionRequestTest, C10_APromptTooLongByItsBytesIsNotTokenised) {
  const auto message = [this](size_t bytes) {
    ApiResult result = Call(R"({"prompt":")" + std::string(bytes, 'x') + R"("})");
    const Json error = Json::parse(std::get<ApiReply>(result).body).at("error");
    EXPECT_EQ(error.at("code"), "context_length_exceeded");
    EXPECT_EQ(error.at("param"), "prompt");
    return error.at("message").get<std::string>();
  };
  EXPECT_EQ(message(12 * 256),
            "this model's maximum context length is 256 tokens; the prompt has 3072 tokens and 1 "
            "more is asked for");
  EXPECT_EQ(message(12 * 256 + 1),
            "this model's maximum context length is 256 tokens; the prompt has at least 257 tokens "
            "and 1 more is asked for");
}

TEST_F(CompletionRequestTest, NothingIsTokenisedForAClientThatLeft) {
  const std::atomic<bool> gone{true};
  EXPECT_EQ(ReadCompletionRequest(R"({"prompt":["a","b"]})", model_.served, &gone).status().code(),
            StatusCode::kCancelled);
  const std::atomic<bool> there{false};
  EXPECT_TRUE(ReadCompletionRequest(R"({"prompt":["a","b"]})", model_.served, &there).ok());
}

TEST_F(CompletionRequestTest, C45_OneBosOnly) {
  testing::ModelOptions options;
  options.adds_bos = true;
  TestModel with_bos(options);
  model_.served.tokenizer = with_bos.served.tokenizer;
  const std::vector<TokenId> expected = {testing::kBos, 'a'};
  EXPECT_EQ(Accepted(R"({"prompt":"a"})")[0].prompt, expected);
  EXPECT_EQ(Accepted(R"({"prompt":"<s>a"})")[0].prompt, expected);
}

TEST_F(CompletionRequestTest, FieldsOfThisEndpoint) {
  EXPECT_EQ(Param(R"({"prompt":"a","suffix":"x"})"), "suffix");
  EXPECT_EQ(Accepted(R"({"prompt":"a","suffix":""})").size(), 1u);
  EXPECT_EQ(Param(R"({"prompt":"a","logprobs":21})"), "logprobs");
  EXPECT_EQ(Param(R"({"prompt":"a","logprobs":true})"), "logprobs");
  EXPECT_EQ(Param(R"({"prompt":"a","echo":1})"), "echo");
  EXPECT_EQ(Param(R"({"prompt":"a","n":2,"best_of":1})"), "best_of");
  EXPECT_EQ(Param(R"({"prompt":"a","best_of":2,"stream":true})"), "best_of");
  EXPECT_EQ(Param(R"({"prompt":["a","b","c","d","e"],"n":128})"), "prompt");
  EXPECT_EQ(Accepted(R"({"prompt":"a","max_tokens":0})")[0].max_tokens, 0);
  EXPECT_EQ(Accepted(R"({"prompt":"a"})")[0].max_tokens, -1);
  const auto ranked = Accepted(R"({"prompt":"a","best_of":3})");
  ASSERT_EQ(ranked.size(), 3u);
  EXPECT_EQ(ranked[0].sampling.logprobs, 0);
  const auto echo = Accepted(R"({"prompt":"ab","echo":true,"logprobs":2})");
  EXPECT_EQ(echo[0].prompt_logprobs, 2);
  EXPECT_EQ(echo[0].sampling.logprobs, 2);
}

TEST_F(CompletionRequestTest, C10_AnOverlongPromptIsRefusedWithBothNumbers) {
  ApiResult result = Call(R"({"prompt":")" + std::string(300, 'a') + R"("})");
  const auto& reply = std::get<ApiReply>(result);
  EXPECT_EQ(reply.status, 400);
  const Json error = Json::parse(reply.body)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_NE(error["message"].get<std::string>().find("300"), std::string::npos);
  EXPECT_NE(error["message"].get<std::string>().find("256"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
