#include "api/json.h"

#include <gtest/gtest.h>

#include <string>

#include "api/excerpt.h"

namespace lockstep {
namespace {

std::string Nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, TakesWhatRfc8259Allows) {
  const auto parsed = ParseJson(R"({"b":1,"a":[true,null,-2.5e3,"\ud83d\ude00é"]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  // Order is kept.
  EXPECT_EQ(DumpJson(*parsed), "{\"b\":1,\"a\":[true,null,-2500.0,\"\U0001F600\u00E9\"]}");
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth)).ok());
}

TEST(Cases, C56_MalformedBodiesAreRefused) {
  const std::string bodies[] = {
      "",
      "{",
      "[]",
      "\"x\"",
      "null",
      "{\"a\":NaN}",
      "{\"a\":Infinity}",
      "{\"a\":1,}",
      "{\"a\":01}",
      "{'a':1}",
      "{\"a\":1} x",
      "{\"a\":\"\\ud800\"}",
      "{\"a\":\"\\udc00x\"}",
      "\xEF\xBB\xBF{}",
      "{\"a\":\"\xFF\"}",
      "{\"a\":\"\xC0\x80\"}",
      "{\"a\":\"line\nbreak\"}",
      "{\"a\":1,\"b\":{\"c\":1,\"c\":2}}",
      "{\"a\":1e999}",
      std::string("{}\0", 3),
  };
  for (const std::string& body : bodies) {
    const auto parsed = ParseJsonObject(body);
    ASSERT_FALSE(parsed.ok()) << body;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument) << body;
    EXPECT_FALSE(parsed.status().message().empty());
  }
}

TEST(Json, NamesTheKeyAtFault) {
  EXPECT_EQ(ParseJson(R"({"x":1,"seed":1e999})").status().param(), "seed");
  EXPECT_EQ(ParseJson(R"({"twice":1,"twice":2})").status().param(), "twice");
  EXPECT_EQ(ParseJson("{\"tools\":" + Nested(3000) + "}").status().param(), "tools");
}

TEST(Cases, C33_DeepNestingIsRefusedAtOnce) {
  EXPECT_FALSE(ParseJson(Nested(kMaxJsonDepth + 1)).ok());
  EXPECT_FALSE(ParseJson(std::string(1 << 20, '[')).ok());
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(ParseJson(objects).ok());
}

TEST(Json, ManyKeysAreNotQuadratic) {
  std::string body = "{";
  for (int i = 0; i < 50'000; ++i) body += "\"k" + std::to_string(i) + "\":0,";
  body += "\"k0\":1}";
  EXPECT_EQ(ParseJson(body).status().param(), "k0");
}

TEST(Json, WhatTheClientWroteIsRepeatedInPart) {
  const std::string digits(1 << 20, '1');
  const Status number = ParseJson("{\"max_tokens\":" + digits + "}").status();
  EXPECT_EQ(number.param(), "max_tokens");
  EXPECT_NE(number.message().find("number 111"), std::string::npos);
  EXPECT_LT(number.message().size(), 300u);
  const std::string key = "\"" + std::string(1 << 20, 'k') + "\":1";
  const Status twice = ParseJson("{" + key + "," + key + "}").status();
  EXPECT_NE(twice.message().find("appears twice"), std::string::npos);
  EXPECT_LT(twice.message().size(), 300u);
}

TEST(Json, AnExcerptIsCutBetweenCharacters) {
  EXPECT_EQ(Excerpt("short", 5), "short");
  EXPECT_EQ(Excerpt("longer", 5), "longe...");
  EXPECT_EQ(Excerpt("ab\u00e9d", 3), "ab...");
  EXPECT_EQ(Excerpt("a\U0001F600", 4), "a...");
}

TEST(Json, DumpNeverFails) { EXPECT_EQ(DumpJson(Json("a\xFF")), "\"a\uFFFD\""); }

}  // namespace
}  // namespace lockstep
