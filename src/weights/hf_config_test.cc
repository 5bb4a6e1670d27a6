#include "weights/hf_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "weights/temp_dir_for_test.h"

namespace lockstep {
namespace {

HfConfig Config(const std::string& text) {
  auto config = HfConfig::Parse(text, "config.json");
  EXPECT_TRUE(config.ok()) << config.status().ToString();
  return *std::move(config);
}

std::string Message(const Status& status) { return status.message(); }

TEST(HfConfig, ReadsEachType) {
  const HfConfig c =
      Config(R"({"s":"é","b":true,"i":-7,"u":4294967295,"f":1e-05,"n":null,"theta":10000,)"
             R"("names":["a",""],"ids":[1,-2],"factors":[1,2.5],"big":9223372036854775807})");
  EXPECT_EQ(*c.GetString("s"), "é");
  EXPECT_EQ(*c.GetBool("b"), true);
  EXPECT_EQ(*c.GetI64("i"), -7);
  EXPECT_EQ(*c.GetI64("big"), 9223372036854775807);
  EXPECT_EQ(*c.GetU32("u"), 4294967295u);
  EXPECT_EQ(*c.GetF64("f"), 1e-05);
  EXPECT_EQ(*c.GetF32("f"), 1e-05f);
  EXPECT_EQ(*c.GetF32("theta"), 10000.0f);
  EXPECT_EQ(*c.GetStringArray("names"), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(*c.GetI64Array("ids"), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(*c.GetF64Array("factors"), (std::vector<double>{1, 2.5}));
}

TEST(HfConfig, NullCountsAsAbsent) {
  const HfConfig c = Config(R"({"n":null})");
  EXPECT_FALSE(c.Has("n"));
  EXPECT_EQ(*c.GetU32Or("n", 3), 3u);
  EXPECT_EQ(*c.GetStringOr("absent", "d"), "d");
  EXPECT_EQ(Message(c.GetU32("n").status()), "config.json: n: is missing");
  EXPECT_EQ(c.GetU32("n").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE((*c.GetObjectOr("n")).has_value());
}

TEST(HfConfig, AWrongTypeIsAnErrorAndNeverTheDefault) {
  const HfConfig c = Config(
      R"({"f":2048.0,"s":"12","b":true,"neg":-1,"wide":4294967296,"huge":18446744073709551615,)"
      R"("a":[1,"x"],"o":{},"far":1e300,"nan":NaN,"inf":-Infinity})");
  EXPECT_EQ(Message(c.GetU32Or("f", 1).status()),
            "config.json: f: expected an integer in the range of u32, found the number 2048");
  EXPECT_EQ(Message(c.GetU32("neg").status()),
            "config.json: neg: expected an integer in the range of u32, found the integer -1");
  EXPECT_EQ(c.GetU32("neg").status().param(), "neg");
  EXPECT_FALSE(c.GetU32Or("s", 1).ok());
  EXPECT_FALSE(c.GetU32Or("b", 1).ok());
  EXPECT_FALSE(c.GetU32Or("wide", 1).ok());
  EXPECT_FALSE(c.GetI64Or("huge", 1).ok());
  EXPECT_FALSE(c.GetF64Or("s", 1).ok());
  EXPECT_FALSE(c.GetF64Or("b", 1).ok());
  EXPECT_FALSE(c.GetF64Or("nan", 1).ok());
  EXPECT_FALSE(c.GetF32Or("inf", 1).ok());
  EXPECT_FALSE(c.GetF32Or("far", 1).ok());
  EXPECT_FALSE(c.GetBoolOr("neg", true).ok());
  EXPECT_FALSE(c.GetStringOr("b", "x").ok());
  EXPECT_FALSE(c.GetObjectOr("a").ok());
  EXPECT_FALSE(c.GetStringArray("a").ok());
  EXPECT_FALSE(c.GetI64Array("o").ok());
  EXPECT_EQ(
      Message(c.GetI64Array("a").status()),
      "config.json: a: expected an array of integers, each in the range of i64, found a string");
}

TEST(HfConfig, ErrorsNameThePathOfTheKey) {
  const HfConfig c = Config(R"({"text_config":{"rope_scaling":{"factor":"8"}}})");
  const auto text = c.GetObject("text_config");
  ASSERT_TRUE(text.ok());
  const auto rope = text->GetObject("rope_scaling");
  ASSERT_TRUE(rope.ok());
  EXPECT_EQ(
      Message(rope->GetF32("factor").status()),
      "config.json: text_config.rope_scaling.factor: expected a finite number, found a string");
  EXPECT_EQ(Message(rope->GetF32("low").status()),
            "config.json: text_config.rope_scaling.low: is missing");
  EXPECT_EQ(Message(rope->Error("type", "is not known")),
            "config.json: text_config.rope_scaling.type: is not known");
}

TEST(HfConfig, SubObjectsOutliveTheDocument) {
  std::optional<HfConfig> inner;
  {
    const HfConfig outer = Config(R"({"o":{"x":5}})");
    inner = *outer.GetObject("o");
  }
  EXPECT_EQ(*inner->GetI64("x"), 5);
}

TEST(HfConfig, ReadsPythonsDialect) {
  const HfConfig c = Config(
      R"({"limit":[0.0,Infinity,-Infinity,NaN],"text":"NaN, \"Infinity\" -Infinity","x":1,"x":2})");
  const auto limit = c.GetF64Array("limit");
  ASSERT_TRUE(limit.ok());
  EXPECT_EQ((*limit)[1], HUGE_VAL);
  EXPECT_EQ((*limit)[2], -HUGE_VAL);
  EXPECT_TRUE(std::isnan((*limit)[3]));
  EXPECT_EQ(*c.GetString("text"), "NaN, \"Infinity\" -Infinity");
  EXPECT_EQ(*c.GetI64("x"), 2);
}

TEST(HfConfig, EosIdsAreOneOrMany) {
  EXPECT_EQ(*Config(R"({"eos_token_id":2})").EosTokenIds(), (std::vector<int32_t>{2}));
  EXPECT_EQ(*Config(R"({"eos_token_id":[7,2]})").EosTokenIds(), (std::vector<int32_t>{7, 2}));
  EXPECT_TRUE(Config(R"({"eos_token_id":null})").EosTokenIds()->empty());
  EXPECT_TRUE(Config("{}").EosTokenIds()->empty());
  for (const char* bad : {"-1", "\"2\"", "2.0", "true", "[1,null]", "[[2]]", "{}", "2147483648"}) {
    const auto ids = Config(std::string(R"({"eos_token_id":)") + bad + "}").EosTokenIds();
    ASSERT_FALSE(ids.ok()) << bad;
    EXPECT_EQ(ids.status().param(), "eos_token_id");
  }
}

TEST(HfConfig, RefusesWhatIsNoObject) {
  for (const std::string text :
       {"", " ", "{", "{\"a\":}", "{\"a\":1,}", "{} x", "{\"a\":nan}", "{\"a\":1Infinity}", "\"",
        "{\"a\":\"\xff\"}", "{\"a\":1e999}", "{\"a", "{\"a\\", "NaN}"}) {
    const auto config = HfConfig::Parse(text, "c.json");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.status().code(), StatusCode::kDataLoss);
    EXPECT_NE(Message(config.status()).find("c.json: is not JSON"), std::string::npos)
        << Message(config.status());
  }
  for (const std::string text : {"[]", "1", "NaN", "null", "\"x\""}) {
    const auto config = HfConfig::Parse(text, "c.json");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_NE(Message(config.status()).find("c.json: expected an object"), std::string::npos);
  }
  const std::string deep = "{\"a\":" + std::string(100000, '[');
  EXPECT_EQ(Message(HfConfig::Parse(deep, "c.json").status()),
            "c.json: nests deeper than 64 levels");
}

TEST(HfConfig, LoadsFiles) {
  const TempDir dir;
  EXPECT_EQ(*HfConfig::Load(dir.Write("c.json", "\xef\xbb\xbf{\"a\":1}"))->GetI64("a"), 1);
  EXPECT_EQ(HfConfig::Load(dir.Path("none")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(HfConfig::Load(dir.Write("empty", "")).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace lockstep
