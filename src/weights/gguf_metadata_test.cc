#include "weights/gguf_metadata.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "weights/gguf_builder_for_test.h"
#include "weights/gguf_parse.h"

namespace lockstep {
namespace {

class GgufMetadataTest : public testing::Test {
 protected:
  // The metadata of `builder`, whose bytes must live on.
  static GgufMetadata Read(const GgufBuilder& builder) {
    auto contents = ParseGguf(std::as_bytes(std::span(builder.bytes())), "m.gguf");
    EXPECT_TRUE(contents.ok()) << contents.status().ToString();
    return GgufMetadata("m.gguf", contents.ok() ? contents->entries : std::vector<GgufEntry>());
  }
  template <typename T>
  static void ExpectError(const Result<T>& result, StatusCode code, const std::string& message) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), code);
    EXPECT_EQ(result.status().message(), message);
    EXPECT_EQ(result.status().param(), "k");
  }
};

TEST_F(GgufMetadataTest, TakesIntegersOfAnyWidthInRange) {
  GgufBuilder b(0, 8);
  b.Entry("u8", GgufType::kU8, uint8_t{200}).Entry("i8", GgufType::kI8, int8_t{100});
  b.Entry("u16", GgufType::kU16, uint16_t{60000}).Entry("i16", GgufType::kI16, int16_t{30000});
  b.Entry("u32", GgufType::kU32, 2147483647u).Entry("i32", GgufType::kI32, int32_t{7});
  b.Entry("u64", GgufType::kU64, uint64_t{8}).Entry("i64", GgufType::kI64, int64_t{9});
  const GgufMetadata m = Read(b);
  const std::pair<const char*, uint32_t> expected[] = {
      {"u8", 200},          {"i8", 100}, {"u16", 60000}, {"i16", 30000},
      {"u32", 2147483647u}, {"i32", 7},  {"u64", 8},     {"i64", 9}};
  for (const auto& [key, value] : expected) {
    EXPECT_EQ(*m.GetU32(key), value);
    EXPECT_EQ(*m.GetI32(key), static_cast<int32_t>(value));
    EXPECT_EQ(*m.GetU64(key), value);
    EXPECT_EQ(*m.GetI64(key), value);
    EXPECT_FALSE(m.GetF32(key).ok());
    EXPECT_FALSE(m.GetBool(key).ok());
    EXPECT_FALSE(m.GetString(key).ok());
    EXPECT_FALSE(m.GetU32Array(key).ok());
  }
}

TEST_F(GgufMetadataTest, RefusesIntegersOutOfRange) {
  const GgufBuilder negative = GgufBuilder(0, 1).Entry("k", GgufType::kI8, int8_t{-1});
  ExpectError(Read(negative).GetU32("k"), StatusCode::kDataLoss,
              "m.gguf: metadata key 'k': expected an integer in the range of u32, found -1 (i8)");
  EXPECT_FALSE(Read(negative).GetU64("k").ok());
  EXPECT_EQ(*Read(negative).GetI32("k"), -1);
  const GgufBuilder big =
      GgufBuilder(0, 1).Entry("k", GgufType::kU64, std::numeric_limits<uint64_t>::max());
  ExpectError(Read(big).GetI64("k"), StatusCode::kDataLoss,
              "m.gguf: metadata key 'k': expected an integer in the range of i64, found "
              "18446744073709551615 (u64)");
}

TEST_F(GgufMetadataTest, SaysExpectedAndActualType) {
  const GgufBuilder text = GgufBuilder(0, 1).StringEntry("k", "32");
  ExpectError(Read(text).GetU32("k"), StatusCode::kDataLoss,
              "m.gguf: metadata key 'k': expected an integer in the range of u32, found string");
  ExpectError(Read(text).GetStringArray("k"), StatusCode::kDataLoss,
              "m.gguf: metadata key 'k': expected array of string, found string");
  GgufBuilder array(0, 1);
  array.Key("k", GgufType::kArray).Array(GgufType::kU8, 2).Raw("ab");
  ExpectError(Read(array).GetF32Array("k"), StatusCode::kDataLoss,
              "m.gguf: metadata key 'k': expected an array of f32, found array of u8");
  ExpectError(Read(array).GetStringArray("k"), StatusCode::kDataLoss,
              "m.gguf: metadata key 'k': expected array of string, found array of u8");
  EXPECT_EQ(*Read(array).GetI32Array("k"), (std::vector<int32_t>{'a', 'b'}));
  ExpectError(Read(GgufBuilder(0, 0)).GetBool("k"), StatusCode::kNotFound,
              "m.gguf: metadata key 'k': is missing (expected bool)");
}

TEST_F(GgufMetadataTest, DefaultsOnlyForAbsentKeys) {
  const GgufBuilder b = GgufBuilder(0, 1).StringEntry("k", "x");
  const GgufMetadata m = Read(b);
  EXPECT_EQ(*m.GetU32Or("absent", 5), 5u);
  EXPECT_EQ(*m.GetStringOr("absent", "d"), "d");
  EXPECT_EQ(*m.GetStringOr("k", "d"), "x");
  EXPECT_FALSE(m.GetU32Or("k", 5).ok());
  EXPECT_FALSE(m.GetF32Or("k", 5).ok());
  EXPECT_FALSE(m.GetBoolOr("k", true).ok());
}

TEST_F(GgufMetadataTest, FloatsMustBeFinite) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()};
  for (const float value : bad) {
    const GgufBuilder b = GgufBuilder(0, 1).Entry("k", GgufType::kF32, value);
    EXPECT_FALSE(Read(b).GetF32("k").ok());
  }
  const GgufBuilder wide = GgufBuilder(0, 1).Entry("k", GgufType::kF64, 1e300);
  EXPECT_FALSE(Read(wide).GetF32("k").ok());
  const GgufBuilder fits = GgufBuilder(0, 1).Entry("k", GgufType::kF64, 1e-5);
  EXPECT_EQ(*Read(fits).GetF32("k"), 1e-5f);
}

TEST_F(GgufMetadataTest, StringsAreBytesAndMayRepeat) {
  GgufBuilder b(0, 1);
  b.Key("k", GgufType::kArray).Array(GgufType::kString, 4);
  b.String("e", "\xff\xfe").String("e", "a").String("e", "").String("e", "a");
  const auto tokens = Read(b).GetStringArray("k");
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(*tokens, (std::vector<std::string_view>{"\xff\xfe", "a", "", "a"}));
}

TEST_F(GgufMetadataTest, NarrowArraysAreNotReadTooFar) {
  // Scores written as u8, read as f32, would run to four times their length.
  GgufBuilder b(0, 1);
  b.Key("k", GgufType::kArray).Array(GgufType::kU8, 40).Raw(std::string(40, 'x'));
  EXPECT_FALSE(Read(b).GetF32Array("k").ok());
  EXPECT_EQ(Read(b).GetI64Array("k")->size(), 40u);
  EXPECT_FALSE(Read(b).GetBoolArray("k").ok());
}

TEST_F(GgufMetadataTest, ArrayElementsMustBeInRange) {
  GgufBuilder b(0, 1);
  b.Key("k", GgufType::kArray).Array(GgufType::kI32, 2).Number("e", 3).Number("e", -4);
  ExpectError(
      Read(b).GetU32Array("k"), StatusCode::kDataLoss,
      "m.gguf: metadata key 'k': expected an array of integers in the range of u32, found -4 (i32) "
      "at element 1");
}

TEST_F(GgufMetadataTest, NestedArraysAreNeitherNumbersNorStrings) {
  const GgufBuilder small = SmallGguf();
  const GgufMetadata m = Read(small);
  EXPECT_FALSE(m.GetU32Array("a.nested").ok());
  EXPECT_FALSE(m.GetStringArray("a.nested").ok());
  EXPECT_EQ(m.Find("a.nested")->TypeText(), "array of array");
}

TEST_F(GgufMetadataTest, ValuesPerLayer) {
  GgufBuilder b(0, 2);
  b.Entry("one", GgufType::kU32, 4u);
  b.Key("many", GgufType::kArray).Array(GgufType::kU32, 2).Number("e", 8u).Number("e", 1u);
  const GgufMetadata m = Read(b);
  EXPECT_EQ(*m.GetU32PerLayer("one", 3), (std::vector<uint32_t>{4, 4, 4}));
  EXPECT_EQ(*m.GetU32PerLayer("many", 2), (std::vector<uint32_t>{8, 1}));
  EXPECT_FALSE(m.GetU32PerLayer("many", 3).ok());
  EXPECT_FALSE(m.GetU32PerLayer("absent", 3).ok());
}

}  // namespace
}  // namespace lockstep
