#include "base/status.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgument("must be even", "x");
  return x / 2;
}

Result<int> Quarter(int x) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int half, Half(x));
  return Half(half);
}

TEST(Status, CarriesCodeMessageAndParam) {
  const Status s = InvalidArgument("must be even", "x");
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(s.param(), "x");
  EXPECT_EQ(s.WithContext("body").ToString(), "invalid argument: body: must be even (x)");
  EXPECT_TRUE(OkStatus().WithContext("body").ok());
}

TEST(Result, PropagatesTheFirstError) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).status().param(), "x");
}

}  // namespace
}  // namespace lockstep
