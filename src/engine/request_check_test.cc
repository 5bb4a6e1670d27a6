#include "engine/request_check.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr RequestLimits kLimits = {.vocab_size = 10, .max_context = 8, .cache_tokens = 100};

GenerationRequest Request(int prompt, int max_tokens) {
  GenerationRequest request;
  request.prompt.assign(static_cast<size_t>(prompt), 1);
  request.max_tokens = max_tokens;
  return request;
}

TEST(CheckRequest, TheContextBoundsPromptAndOutput) {
  EXPECT_EQ(*CheckRequest(Request(7, 1), kLimits), 1);
  EXPECT_EQ(*CheckRequest(Request(8, 0), kLimits), 0);
  EXPECT_EQ(*CheckRequest(Request(3, -1), kLimits), 5);
  for (const auto& [prompt, max_tokens, param] :
       {std::tuple{8, 1, "prompt"}, {8, -1, "prompt"}, {9, 0, "prompt"}, {7, 2, "max_tokens"}}) {
    const auto result = CheckRequest(Request(prompt, max_tokens), kLimits);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kContextLength);
    EXPECT_EQ(result.status().param(), param);
    EXPECT_NE(result.status().message().find("8 tokens"), std::string::npos);
  }
}

TEST(CheckRequest, WhatTheCacheCanNeverHoldIsRefused) {
  const RequestLimits small = {.vocab_size = 10, .max_context = 8, .cache_tokens = 5};
  EXPECT_EQ(*CheckRequest(Request(3, -1), small), 2);  // the safe context
  EXPECT_EQ(*CheckRequest(Request(4, 1), small), 1);
  for (const auto& [prompt, max_tokens] : {std::pair{4, 2}, {5, -1}, {6, 0}}) {
    const auto result = CheckRequest(Request(prompt, max_tokens), small);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
  }
}

TEST(CheckRequest, FieldsOutOfRangeAreNamed) {
  const auto param = [](GenerationRequest request) {
    const auto result = CheckRequest(request, kLimits);
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    return result.status().param();
  };
  GenerationRequest request = Request(2, 2);
  EXPECT_EQ(param(Request(0, 1)), "prompt");
  EXPECT_EQ(param(Request(2, -2)), "max_tokens");
  for (const TokenId id : {-1, 10}) {
    request = Request(2, 2);
    request.prompt[1] = id;
    EXPECT_EQ(param(request), "prompt");
    request = Request(2, 2);
    request.stop_token_ids = {id};
    EXPECT_EQ(param(request), "stop_token_ids");
    request = Request(2, 2);
    request.sampling.logit_bias = {{id, 1.0f}};
    EXPECT_EQ(param(request), "logit_bias");
  }
  for (const int32_t min_tokens : {-1, 3}) {
    request = Request(2, 2);
    request.min_tokens = min_tokens;
    EXPECT_EQ(param(request), "min_tokens");
  }
}

}  // namespace
}  // namespace lockstep
