#include "engine/output_processor.h"

#include <gtest/gtest.h>

#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::IdOf;
using testing::kControl;
using testing::kEos;
using testing::TestTokenizer;

GenerationRequest Request() {
  GenerationRequest request;
  request.prompt = {2, 3};
  return request;
}

// Pushes tokens until the answer ends.
GenerationEvent PushAll(const GenerationRequest& request, int32_t max_tokens,
                        const std::vector<TokenId>& ids) {
  OutputProcessor output(request, max_tokens, TestTokenizer(), {kEos});
  GenerationEvent event;
  for (const TokenId id : ids) {
    EXPECT_FALSE(event.end);
    output.Push(id, {}, &event);
  }
  return event;
}

TEST(OutputProcessor, EndOfSequenceIsCountedButNeitherShownNorReported) {
  const GenerationEvent event = PushAll(Request(), 10, {IdOf("a"), kEos});
  EXPECT_EQ(event.text, "a");
  EXPECT_EQ(event.tokens.size(), 1u);
  ASSERT_TRUE(event.end);
  EXPECT_EQ(event.end->reason, FinishReason::kStop);
  EXPECT_FALSE(event.end->stop_token);
  EXPECT_EQ(event.end->usage.prompt_tokens, 2);
  EXPECT_EQ(event.end->usage.completion_tokens, 2);
}

TEST(OutputProcessor, EndOfSequenceOnTheLastAllowedTokenIsStop) {
  const GenerationEvent event = PushAll(Request(), 2, {IdOf("a"), kEos});
  ASSERT_TRUE(event.end);
  EXPECT_EQ(event.end->reason, FinishReason::kStop);
}

TEST(OutputProcessor, LengthEndsAtTheLastAllowedToken) {
  const GenerationEvent event = PushAll(Request(), 2, {IdOf("a"), IdOf("b")});
  ASSERT_TRUE(event.end);
  EXPECT_EQ(event.end->reason, FinishReason::kLength);
  EXPECT_EQ(event.text, "ab");
  EXPECT_EQ(event.end->usage.completion_tokens, 2);
}

TEST(OutputProcessor, IgnoredEndOfSequenceIsATokenWithoutText) {
  GenerationRequest request = Request();
  request.ignore_eos = true;
  const GenerationEvent event = PushAll(request, 2, {kEos, IdOf("b")});
  EXPECT_EQ(event.text, "b");
  ASSERT_EQ(event.tokens.size(), 2u);
  EXPECT_EQ(event.tokens[0].bytes, "");
  EXPECT_EQ(event.end->reason, FinishReason::kLength);
}

TEST(OutputProcessor, SpecialTokensAreShownWhenAskedFor) {
  GenerationRequest request = Request();
  request.skip_special_tokens = false;
  const GenerationEvent event = PushAll(request, 1, {kControl});
  EXPECT_EQ(event.text, "<control>");
  EXPECT_EQ(event.tokens[0].bytes, "<control>");
}

TEST(OutputProcessor, AStopIdActsLikeEndOfSequenceAndIsNamed) {
  GenerationRequest request = Request();
  request.stop_token_ids = {IdOf("z"), IdOf("b")};
  const GenerationEvent event = PushAll(request, 9, {IdOf("a"), IdOf("b")});
  EXPECT_EQ(event.text, "a");
  EXPECT_EQ(event.tokens.size(), 1u);
  EXPECT_EQ(event.end->reason, FinishReason::kStop);
  EXPECT_EQ(event.end->stop_token, IdOf("b"));
  EXPECT_EQ(event.end->usage.completion_tokens, 2);
}

TEST(OutputProcessor, NothingOfAStopStringIsShownButItsTokensAreReported) {
  GenerationRequest request = Request();
  request.stop = {"cde"};
  OutputProcessor output(request, 9, TestTokenizer(), {kEos});
  GenerationEvent event;
  output.Push(IdOf("a"), {}, &event);
  EXPECT_EQ(event.text, "a");
  output.Push(IdOf("bc"), {}, &event);
  EXPECT_EQ(event.text, "ab");
  output.Push(IdOf("de"), {}, &event);
  EXPECT_EQ(event.text, "ab");
  ASSERT_TRUE(event.end);
  EXPECT_EQ(event.end->reason, FinishReason::kStop);
  EXPECT_EQ(event.end->stop, "cde");
  EXPECT_EQ(event.tokens.size(), 3u);
  EXPECT_EQ(event.tokens[2].bytes, "de");
  EXPECT_EQ(event.end->usage.completion_tokens, 3);
}

TEST(OutputProcessor, AStopStringOnTheLastAllowedTokenIsStop) {
  GenerationRequest request = Request();
  request.stop = {"b"};
  EXPECT_EQ(PushAll(request, 2, {IdOf("a"), IdOf("b")}).end->reason, FinishReason::kStop);
}

TEST(OutputProcessor, TextHeldForAStopStringIsGivenOutAtTheEnd) {
  GenerationRequest request = Request();
  request.stop = {"STOP"};
  EXPECT_EQ(PushAll(request, 9, {IdOf("a"), IdOf("ST"), kEos}).text, "aST");
  EXPECT_EQ(PushAll(request, 2, {IdOf("a"), IdOf("ST")}).text, "aST");
}

TEST(OutputProcessor, CharactersAreNeverSplit) {
  OutputProcessor output(Request(), 9, TestTokenizer(), {kEos});
  GenerationEvent event;
  output.Push(IdOf("\xE2"), {}, &event);
  output.Push(IdOf("\xA3"), {}, &event);
  EXPECT_EQ(event.text, "");
  EXPECT_EQ(event.tokens[1].bytes, "\xA3");
  output.Push(IdOf("\xA1"), {}, &event);
  EXPECT_EQ(event.text, "\u28E1");
  output.Push(IdOf("\xC3"), {}, &event);
  output.Push(kEos, {}, &event);
  EXPECT_EQ(event.text, "\u28E1\uFFFD");
}

TEST(OutputProcessor, EndsAreBannedBeforeMinTokens) {
  GenerationRequest request = Request();
  request.min_tokens = 2;
  request.stop_token_ids = {9, 5, 9};
  OutputProcessor output(request, 9, TestTokenizer(), {kEos});
  GenerationEvent event;
  const std::vector<TokenId> all = {kEos, 5, 9};
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::equal(all.begin(), all.end(), output.banned().begin(), output.banned().end()));
    output.Push(IdOf("a"), {}, &event);
  }
  EXPECT_TRUE(output.banned().empty());
}

TEST(OutputProcessor, StopStringsDoNotCountBeforeMinTokens) {
  GenerationRequest request = Request();
  request.min_tokens = 2;
  request.stop = {"b"};
  const GenerationEvent event = PushAll(request, 9, {IdOf("b"), IdOf("b"), IdOf("a"), IdOf("b")});
  EXPECT_EQ(event.text, "bba");
  ASSERT_TRUE(event.end);
  EXPECT_EQ(event.end->reason, FinishReason::kStop);
}

TEST(OutputProcessor, FinishSaysWhyAndGivesOutWhatIsHeld) {
  GenerationRequest request = Request();
  request.stop = {"STOP"};
  OutputProcessor output(request, 9, TestTokenizer(), {kEos});
  GenerationEvent event;
  output.Push(IdOf("ST"), {}, &event);
  output.Finish(FinishReason::kCancelled, Unavailable("gone"), &event);
  EXPECT_EQ(event.text, "ST");
  EXPECT_EQ(event.end->reason, FinishReason::kCancelled);
  EXPECT_EQ(event.end->status.code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lockstep
