#include "api/token_trail.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TokenEvent Token(std::string bytes) {
  TokenEvent token;
  token.bytes = std::move(bytes);
  return token;
}

std::vector<std::string> Texts(const std::vector<ShownToken>& tokens) {
  std::vector<std::string> texts;
  for (const ShownToken& token : tokens) texts.push_back(token.text);
  return texts;
}

using Strings = std::vector<std::string>;

TEST(TokenTrail, ATokenWaitsForItsText) {
  TokenTrail trail;
  trail.Push(Token("ab"));
  trail.Push(Token("cd"));
  EXPECT_EQ(Texts(trail.Release(1)), Strings());
  EXPECT_EQ(Texts(trail.Release(2)), Strings({"ab"}));
  EXPECT_EQ(Texts(trail.Release(4)), Strings({"cd"}));
}

TEST(TokenTrail, PartsOfACharacterLeaveWithIt) {
  TokenTrail trail;
  trail.Push(Token("\xC3"));
  EXPECT_EQ(Texts(trail.Release(0)), Strings());
  trail.Push(Token("\xA9"));
  const auto shown = trail.Release(2);
  EXPECT_EQ(Texts(shown), Strings({"", "\u00E9"}));
  EXPECT_EQ(shown[0].bytes, "\xC3");
  EXPECT_EQ(shown[1].bytes, "\xA9");
}

TEST(TokenTrail, NothingOfAStopStringIsShown) {
  TokenTrail trail;
  for (const char* bytes : {"one", " t", "wo st", "op!"}) trail.Push(Token(bytes));
  // The answer is "one two ": the stop string began inside the third token.
  const auto shown = trail.Finish(8, true);
  EXPECT_EQ(Texts(shown), Strings({"one", " t", "wo "}));
  EXPECT_EQ(shown[2].bytes, "wo ");
}

TEST(TokenTrail, AnAnswerThatBeginsWithAStopStringHasNoTokens) {
  TokenTrail trail;
  trail.Push(Token("\xC3"));
  trail.Push(Token("\xA9"));
  EXPECT_TRUE(trail.Finish(0, true).empty());
}

TEST(TokenTrail, AnUnfinishedCharacterEndsAsReplacement) {
  TokenTrail trail;
  trail.Push(Token("a"));
  trail.Push(Token("\xE2\x82"));
  const auto shown = trail.Finish(4, false);
  EXPECT_EQ(Texts(shown), Strings({"a", "\uFFFD"}));
  EXPECT_EQ(shown[1].bytes, "\xE2\x82");
}

}  // namespace
}  // namespace lockstep
