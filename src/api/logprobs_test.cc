#include "api/logprobs.h"

#include <gtest/gtest.h>

#include <limits>

#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::ByteTokenizer;

ShownToken Token(std::string text, std::string bytes, TokenId id, float logprob,
                 std::vector<TokenLogprob> top) {
  ShownToken token;
  token.text = std::move(text);
  token.bytes = std::move(bytes);
  token.logprobs = {id, logprob, std::move(top)};
  return token;
}

TEST(Cases, C03_PartOfACharacterKeepsItsRawByte) {
  const auto tokenizer = ByteTokenizer();
  const Json entry =
      ChatLogprob(Token("", "\xA1", 0xA1, -0.5f, {{0xA1, -0.5f}, {'b', -1.0f}}), 2, *tokenizer);
  EXPECT_EQ(DumpJson(entry),
            "{\"token\":\"\uFFFD\",\"logprob\":-0.5,\"bytes\":[161],\"top_logprobs\":["
            "{\"token\":\"\uFFFD\",\"logprob\":-0.5,\"bytes\":[161]},"
            "{\"token\":\"b\",\"logprob\":-1.0,\"bytes\":[98]}]}");
}

TEST(Logprobs, ChatListsExactlyTheBestAsked) {
  const auto tokenizer = ByteTokenizer();
  const auto token = Token("z", "z", 'z', -9.0f, {{'a', -0.5f}, {'b', -1.0f}});
  EXPECT_EQ(ChatLogprob(token, 0, *tokenizer)["top_logprobs"], Json::array());
  EXPECT_EQ(ChatLogprob(token, 1, *tokenizer)["top_logprobs"].size(), 1u);
  EXPECT_EQ(ChatLogprob(token, 2, *tokenizer)["logprob"], -9.0);
}

TEST(Logprobs, ImpossibleTokensStayJson) {
  const float lowest = -std::numeric_limits<float>::infinity();
  const Json entry = ChatLogprob(Token("a", "a", 'a', lowest, {}), 0, *ByteTokenizer());
  EXPECT_EQ(entry["logprob"], -9999.0);
}

TEST(Logprobs, LegacyArraysAreParallelAndJoinToTheText) {
  const auto tokenizer = ByteTokenizer();
  LegacyLogprobs logprobs(1);
  logprobs.AddUnpredicted("a");
  // The sampled token stands in its own top list although it was not the best.
  logprobs.Add(Token("\u00E9", "\xA9", 0xA9, -2.0f, {{'b', -0.25f}}), *tokenizer);
  logprobs.Add(Token("c", "c", 'c', -1.0f, {{'c', -1.0f}}), *tokenizer);
  EXPECT_EQ(DumpJson(logprobs.Take()),
            "{\"tokens\":[\"a\",\"\u00E9\",\"c\"],\"token_logprobs\":[null,-2.0,-1.0],"
            "\"top_logprobs\":[null,{\"b\":-0.25,\"\u00E9\":-2.0},{\"c\":-1.0}],"
            "\"text_offset\":[0,1,2]}");
  logprobs.Add(Token("d", "d", 'd', -1.0f, {}), *tokenizer);
  EXPECT_EQ(logprobs.Take()["text_offset"], Json::array({3}));
}

}  // namespace
}  // namespace lockstep
