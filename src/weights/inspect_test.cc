#include "weights/inspect.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "weights/gguf_builder_for_test.h"
#include "weights/temp_dir_for_test.h"

namespace lockstep {
namespace {

class InspectTest : public testing::Test {
 protected:
  std::shared_ptr<const Checkpoint> Write(const GgufBuilder& builder) {
    auto checkpoint = Checkpoint::Open(dir_.Write("m.gguf", builder.bytes()));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
    return *checkpoint;
  }
  TempDir dir_;
};

TEST_F(InspectTest, JsonHoldsEverythingShortened) {
  const auto checkpoint = Write(SmallGguf());
  InspectOptions options;
  options.max_array = 1;
  options.max_string = 3;
  const auto json = nlohmann::json::parse(InspectJson(*checkpoint, options));
  EXPECT_EQ(json["kind"], "gguf");
  EXPECT_EQ(json["version"], 3);
  EXPECT_EQ(json["metadata"]["general.alignment"],
            (nlohmann::json{{"type", "u32"}, {"value", 32}}));
  EXPECT_EQ(json["metadata"]["general.architecture"]["value"],
            (nlohmann::json{{"bytes", 5}, {"first", "lla"}}));
  EXPECT_EQ(json["metadata"]["a.strings"]["value"],
            (nlohmann::json{{"count", 2}, {"first", {"x"}}}));
  EXPECT_EQ(json["metadata"]["a.bool"]["value"], true);
  EXPECT_EQ(
      json["tensors"][0],
      (nlohmann::json{{"name", "first"}, {"dtype", "F32"}, {"shape", {2, 3}}, {"bytes", 24}}));
  EXPECT_EQ(json["totals"]["by_dtype"]["Q4_0"],
            (nlohmann::json{{"tensors", 1}, {"elements", 32}, {"bytes", 18}}));
  EXPECT_EQ(json["totals"]["bytes"], 42);
}

TEST_F(InspectTest, NestedArraysAreWalkedToTheirEnd) {
  const auto json = nlohmann::json::parse(InspectJson(*Write(SmallGguf())));
  EXPECT_EQ(json["metadata"]["a.nested"]["value"], nlohmann::json::parse("[[1,2],[]]"));
}

TEST_F(InspectTest, TextIsSafeForATerminal) {
  GgufBuilder b(0, 3);
  b.StringEntry("evil\x1b[2J", "\x1b]0;title\x07 \xff");
  b.Entry("eps", GgufType::kF32, 1e-5f);
  b.Entry("nan", GgufType::kF32, std::numeric_limits<float>::quiet_NaN());
  const auto checkpoint = Write(b);
  const std::string text = InspectText(*checkpoint);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  EXPECT_NE(text.find("evil\\x1b[2J"), std::string::npos) << text;
  EXPECT_NE(text.find(" 1e-05\n"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(InspectJson(*checkpoint));
  EXPECT_EQ(json["metadata"]["nan"]["value"], "nan");
}

TEST_F(InspectTest, TextSaysFormatTensorsAndTotals) {
  const std::string text = InspectText(*Write(SmallGguf()));
  for (const char* line :
       {"format: GGUF version 3, alignment 32, little endian\n", "\"llama\"\n", "\"x\", \"\"",
        "array of string [2]", "tensors: 2\n", "[2, 3]", "24 bytes\n", "totals:\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST_F(InspectTest, ShowsFoldersWithTheirConfig) {
  dir_.Write("m/config.json",
             R"({"hidden_size":2,"limit":[0,Infinity],"long":[1,2,3,4,5,6,7,8,9]})");
  const std::string header = R"({"__metadata__":{"format":"pt"}})";
  const uint64_t length = header.size();
  dir_.Write("m/model.safetensors",
             std::string(reinterpret_cast<const char*>(&length), 8) + header);
  const auto checkpoint = Checkpoint::Open(dir_.Path("m"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
  const auto json = nlohmann::json::parse(InspectJson(**checkpoint));
  EXPECT_EQ(json["kind"], "hf folder");
  EXPECT_EQ(json["config"]["hidden_size"], 2);
  EXPECT_EQ(json["config"]["limit"][1], "inf");
  EXPECT_EQ(json["config"]["long"]["count"], 9);
  EXPECT_EQ(json["files"][0]["metadata"]["format"], "pt");
  const std::string text = InspectText(**checkpoint);
  EXPECT_NE(text.find("config.json: 3 keys"), std::string::npos) << text;
  EXPECT_NE(text.find("[1, 2, 3, 4, 5, 6, 7, 8, ...]"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
