#include "api/query.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Query, Values) {
  EXPECT_EQ(QueryValue("limit=3&after=a%26b+c&x", "after"), "a&b c");
  EXPECT_EQ(QueryValue("limit=3&after=a%26b+c&x", "limit"), "3");
  EXPECT_EQ(QueryValue("limit=3&x", "x"), "");
  EXPECT_EQ(QueryValue("a=b=c&a=d", "a"), "b=c");
  EXPECT_EQ(QueryValue("&&=&%61=1", "a"), "1");
  EXPECT_EQ(QueryValue("", "a"), std::nullopt);
  EXPECT_EQ(QueryValue("ab=1", "a"), std::nullopt);
  EXPECT_EQ(PercentDecode("%4a%4A%zz%4"), "JJ%zz%4");
}

}  // namespace
}  // namespace lockstep
