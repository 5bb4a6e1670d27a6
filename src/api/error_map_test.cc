#include "api/error_map.h"

#include <gtest/gtest.h>

#include "api/endpoint.h"

namespace lockstep {
namespace {

TEST(ErrorMap, EveryCodeHasItsStatus) {
  const std::pair<StatusCode, int> expected[] = {
      {StatusCode::kInvalidArgument, 400},
      {StatusCode::kNotFound, 404},
      {StatusCode::kFailedPrecondition, 400},
      {StatusCode::kContextLength, 400},
      {StatusCode::kResourceExhausted, 400},
      {StatusCode::kQueueFull, 429},
      {StatusCode::kUnavailable, 503},
      {StatusCode::kUnauthenticated, 401},
      {StatusCode::kDataLoss, 500},
      {StatusCode::kUnimplemented, 400},
      {StatusCode::kCancelled, 503},
      {StatusCode::kDeadlineExceeded, 504},
      {StatusCode::kIoError, 500},
      {StatusCode::kInternal, 500},
  };
  for (const auto& [code, http] : expected) {
    const HttpError error = ToHttpError(Status(code, "m", "p"));
    EXPECT_EQ(error.status, http) << StatusCodeName(code);
    EXPECT_EQ(error.body["error"]["message"], "m");
    EXPECT_EQ(error.body["error"]["param"], "p");
    EXPECT_TRUE(error.body["error"]["type"].is_string());
    EXPECT_TRUE(error.body["error"].contains("code"));
  }
}

TEST(ErrorMap, BodyIsOpenAisShape) {
  EXPECT_EQ(
      DumpJson(ToHttpError(InvalidArgument("bad")).body),
      R"({"error":{"message":"bad","type":"invalid_request_error","param":null,"code":null}})");
  EXPECT_EQ(ToHttpError(NotFound("no", "model")).body["error"]["code"], "model_not_found");
  EXPECT_EQ(ToHttpError(Status(StatusCode::kContextLength, "long")).body["error"]["code"],
            "context_length_exceeded");
}

TEST(ErrorMap, AnAnswerDoesNotGrowWithWhatItRepeats) {
  std::string characters;
  for (int i = 0; i < 1'000'000; ++i) characters += "\u00e9";
  const std::string body = DumpJson(ToHttpError(InvalidArgument(characters, characters)).body);
  EXPECT_LT(body.size(), 4096u);
  EXPECT_EQ(body.find("\uFFFD"), std::string::npos);  // cut between characters
}

TEST(ErrorMap, RetryAfterWhereRetryingHelps) {
  const ApiReply reply = ErrorReply(Status(StatusCode::kQueueFull, "full"));
  ASSERT_EQ(reply.headers.size(), 1u);
  EXPECT_EQ(reply.headers[0].first, "Retry-After");
  EXPECT_TRUE(ErrorReply(InvalidArgument("x")).headers.empty());
}

}  // namespace
}  // namespace lockstep
