#include "server/router.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

ApiResult Nothing(const ApiContext&, const ApiCall&) { return ApiReply(); }

constexpr Route kTable[] = {{"GET", "/a", Nothing},
                            {"POST", "/a", Nothing},
                            {"GET", "/r/*/items", Nothing},
                            {"DELETE", "/r/*", Nothing},
                            {"GET", "/m/*", Nothing}};

TEST(Router, FindsByMethodAndPath) {
  const Router router(kTable);
  EXPECT_EQ(router.Find("GET", "/a").route, &kTable[0]);
  EXPECT_EQ(router.Find("POST", "/a?x=/b").route, &kTable[1]);
  EXPECT_EQ(router.Find("HEAD", "/a").route, &kTable[0]);
  EXPECT_EQ(router.Find("GET", "http://host:1/a#x").route, &kTable[0]);
  EXPECT_EQ(router.Find("GET", "/m/org%2Fname/x").rest, "org/name/x");
  EXPECT_EQ(router.Find("GET", "/m/").route, nullptr);
  EXPECT_EQ(router.Find("GET", "/a?x=/b&y#z").query, "x=/b&y");
  EXPECT_EQ(router.Find("GET", "/a").query, "");
}

TEST(Router, AStarInTheMiddle) {
  const Router router(kTable);
  EXPECT_EQ(router.Find("GET", "/r/a%20b/items").route, &kTable[2]);
  EXPECT_EQ(router.Find("GET", "/r/a%20b/items").rest, "a b");
  EXPECT_EQ(router.Find("DELETE", "/r/a").route, &kTable[3]);
  EXPECT_EQ(router.Find("DELETE", "/r/a").rest, "a");
  // The first path that matches is the one.
  EXPECT_EQ(router.Find("DELETE", "/r/a/items").route, nullptr);
  EXPECT_EQ(router.Find("DELETE", "/r/a/items").allow, "GET, HEAD, OPTIONS");
  EXPECT_EQ(router.Find("GET", "/r//items").route, nullptr);
}

TEST(Router, SaysWhatAPathTakes) {
  const Router router(kTable);
  const RouteMatch wrong = router.Find("DELETE", "/a");
  EXPECT_EQ(wrong.route, nullptr);
  EXPECT_EQ(wrong.allow, "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(router.Find("GET", "/b").allow, "");
  EXPECT_EQ(router.Find("get", "/a").route, nullptr);
}

TEST(Router, TargetPath) {
  EXPECT_EQ(TargetPath("http://host"), "/");
  EXPECT_EQ(TargetPath("*"), "*");
  EXPECT_EQ(TargetPath("/x?y"), "/x");
}

}  // namespace
}  // namespace lockstep
