// Where a chat says that its next turn will go on from.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "api/openai_chat/endpoint.h"
#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::ModelOptions;
using testing::TestModel;

// The engine's request that a chat of one message of so many characters becomes.
GenerationRequest Ask(TestModel& model, int length, const std::string& more = "") {
  model.served.max_context = 1024;
  HttpCounters http;
  ApiContext context;
  context.model = std::make_shared<ServedModel>(model.served);
  context.http = &http;
  const std::string body = R"({"messages":[{"role":"user","content":")" +
                           std::string(static_cast<size_t>(length), 'x') + "\"}]" + more + "}";
  ApiResult result = HandleChatCompletions(context, {body, {}, "u", 1});
  if (auto* reply = std::get_if<ApiReply>(&result)) {
    ADD_FAILURE() << reply->body;
    return {};
  }
  return std::get<GenerationJob>(std::move(result)).requests.at(0);
}

TEST(StablePrompt, EndsBeforeTheOpeningOfTheAnswer) {
  ModelOptions options;
  options.fake.cache_groups.push_back({CacheKind::kRecurrent, 4, 64, "fake"});
  TestModel model(options);
  const GenerationRequest request = Ask(model, 400);
  ASSERT_GT(request.stable_tokens, 0);
  const std::span<const TokenId> tokens = request.prompt;
  EXPECT_EQ(model.served.tokenizer->Decode(tokens.subspan(request.stable_tokens),
                                           {.skip_special = false}),
            "<|im_start|>assistant\n");
  EXPECT_EQ(Ask(model, 400, R"(,"add_generation_prompt":false)").stable_tokens, 0);
  EXPECT_EQ(Ask(model, 2).stable_tokens, 0);  // nothing to gain
}

TEST(StablePrompt, IsNotLookedForWhereCachesCanBeCutAnywhere) {
  TestModel model;
  EXPECT_EQ(Ask(model, 400).stable_tokens, 0);
}

}  // namespace
}  // namespace lockstep
