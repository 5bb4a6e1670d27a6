#include "weights/gguf_parse.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "weights/gguf_builder_for_test.h"

namespace lockstep {
namespace {

constexpr uint64_t kMaxU64 = std::numeric_limits<uint64_t>::max();

Result<GgufContents> Parse(const std::string& bytes) {
  return ParseGguf(std::as_bytes(std::span(bytes)), "m.gguf");
}

// The error of a file that must be refused, checked to name the file and `says`.
void ExpectError(const GgufBuilder& builder, StatusCode code, const std::string& says) {
  const auto result = Parse(builder.bytes());
  ASSERT_FALSE(result.ok()) << says;
  const std::string& message = result.status().message();
  EXPECT_EQ(result.status().code(), code) << message;
  EXPECT_TRUE(message.starts_with("m.gguf: ")) << message;
  EXPECT_NE(message.find(says), std::string::npos) << message;
}

void ExpectCorrupt(const GgufBuilder& builder, const std::string& says) {
  ExpectError(builder, StatusCode::kDataLoss, says);
}

TEST(GgufParse, ReadsWhatWasWritten) {
  const GgufBuilder file = SmallGguf();
  const auto contents = Parse(file.bytes());
  ASSERT_TRUE(contents.ok()) << contents.status().ToString();
  EXPECT_EQ(contents->version, 3u);
  EXPECT_EQ(contents->alignment, 32u);
  EXPECT_EQ(contents->entries.size(), 6u);
  ASSERT_EQ(contents->tensors.size(), 2u);
  EXPECT_EQ(contents->tensors[0].name, "first");
  EXPECT_EQ(contents->tensors[0].dtype, DType::kF32);
  EXPECT_EQ(contents->tensors[0].shape, (std::vector<int64_t>{2, 3}));  // turned round
  EXPECT_EQ(contents->tensors[0].data.size(), 24u);
  EXPECT_EQ(contents->tensors[1].dtype, DType::kQ4_0);
  EXPECT_EQ(contents->tensors[1].data.size(), 18u);
  EXPECT_EQ(contents->tensors[1].data.data() - contents->tensors[0].data.data(), 32);
}

TEST(GgufParse, ReadsVersion2AndFilesWithoutTensors) {
  EXPECT_TRUE(Parse(GgufBuilder(0, 0, 2).bytes()).ok());
  EXPECT_TRUE(Parse(GgufBuilder(0, 0, 3).bytes()).ok());
}

TEST(GgufParse, RefusesOtherFormatsAndVersions) {
  for (const std::string bytes : {"", "GGU", "GGML....", "PK\3\4............"}) {
    const auto result = Parse(bytes);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(result.status().message().find("not a GGUF file"), std::string::npos);
  }
  ExpectError(GgufBuilder(0, 0, 1), StatusCode::kUnimplemented, "GGUF version 1");
  ExpectError(GgufBuilder(0, 0, 4), StatusCode::kUnimplemented, "GGUF version 4");
  ExpectError(GgufBuilder(0, 0, 0), StatusCode::kUnimplemented, "GGUF version 0");
  ExpectError(GgufBuilder(0, 0, 0x03000000), StatusCode::kUnimplemented, "big-endian");
}

TEST(GgufParse, RefusesCountsThatTheFileCannotHold) {
  for (const uint64_t count : {uint64_t{1}, uint64_t{1} << 40, uint64_t{1} << 63, kMaxU64}) {
    ExpectCorrupt(GgufBuilder(count, 0), "tensors, more than");
    ExpectCorrupt(GgufBuilder(0, count), "metadata entries, more than");
  }
}

TEST(GgufParse, RefusesImpossibleStrings) {
  for (const uint64_t length : {uint64_t{1} << 30, uint64_t{1} << 63, kMaxU64}) {
    GgufBuilder key(0, 1);
    key.Number("key length", length).Raw(std::string(160, 'k'));
    ExpectCorrupt(key, "inside the key of metadata entry 0");
    GgufBuilder value(0, 1);
    value.Key("k", GgufType::kString).Number("length", length).Raw(std::string(160, 'v'));
    ExpectCorrupt(value, "'k' holds a string that is longer than the file");
    GgufBuilder element(0, 1);
    element.Key("k", GgufType::kArray).Array(GgufType::kString, 1).Number("length", length);
    ExpectCorrupt(element, "'k' element 0 is longer than the file");
    GgufBuilder name(1, 0);
    name.Number("name length", length).Raw(std::string(160, 'n'));
    ExpectCorrupt(name, "the name of tensor 0 has");
  }
}

TEST(GgufParse, RefusesKeysOutsideTheFormat) {
  ExpectCorrupt(GgufBuilder(0, 1).Entry("", GgufType::kU64, kMaxU64), "key of metadata entry 0");
  const std::string longest(65535, 'k');
  EXPECT_TRUE(Parse(GgufBuilder(0, 1).Entry(longest, GgufType::kU8, uint8_t{1}).bytes()).ok());
  ExpectCorrupt(GgufBuilder(0, 1).Entry(longest + "k", GgufType::kU8, uint8_t{1}),
                "has 65536 bytes");
  GgufBuilder twice(0, 2);
  twice.Entry("k", GgufType::kU32, 1u).Entry("k", GgufType::kU32, 1u);
  ExpectCorrupt(twice, "key 'k' appears twice");
}

TEST(GgufParse, RefusesUnknownValueTypesAndBools) {
  ExpectCorrupt(GgufBuilder(0, 1).Key("k", static_cast<GgufType>(13)).Raw("1234"),
                "'k' has the unknown value type 13");
  ExpectCorrupt(GgufBuilder(0, 1).Key("k", GgufType::kArray).Array(static_cast<GgufType>(99), 0),
                "'k' is an array of the unknown type 99");
  ExpectCorrupt(GgufBuilder(0, 1).Entry("k", GgufType::kBool, uint8_t{2}),
                "'k' holds 2 where a bool");
}

TEST(GgufParse, RefusesArraysThatTheFileCannotHold) {
  for (uint32_t type = 0; type < kGgufTypeCount; ++type) {
    for (const uint64_t count :
         {uint64_t{1} << 20, uint64_t{1} << 61, uint64_t{1} << 62, kMaxU64}) {
      GgufBuilder b(0, 1);
      b.Key("k", GgufType::kArray).Array(static_cast<GgufType>(type), count);
      b.Raw(std::string(64, '\0'));
      ExpectCorrupt(b, "'k' claims an array of");
    }
  }
}

TEST(GgufParse, LimitsTheDepthOfArrays) {
  const auto nested = [](int depth) {
    GgufBuilder b(0, 1);
    b.Key("k", GgufType::kArray);
    for (int i = 1; i < depth; ++i) b.Array(GgufType::kArray, 1);
    b.Array(GgufType::kU8, 1).Number("e", uint8_t{1});
    return b;
  };
  EXPECT_TRUE(Parse(nested(kGgufMaxArrayDepth).bytes()).ok());
  ExpectCorrupt(nested(kGgufMaxArrayDepth + 1), "'k' nests arrays deeper");
  ExpectCorrupt(nested(100000), "'k' nests arrays deeper");
}

TEST(GgufParse, RefusesBadAlignment) {
  for (const uint32_t bad : {0u, 1u, 3u, 4u, 33u, 1u << 21, 1u << 30, 1u << 31, ~0u}) {
    ExpectCorrupt(GgufBuilder(0, 1).Entry("general.alignment", GgufType::kU32, bad),
                  "'general.alignment' is " + std::to_string(bad));
  }
  ExpectCorrupt(GgufBuilder(0, 1).Entry("general.alignment", GgufType::kI32, int32_t{32}),
                "'general.alignment' must be u32, found i32");
  ExpectCorrupt(
      GgufBuilder(0, 1).Key("general.alignment", GgufType::kArray).Array(GgufType::kU32, 0),
      "'general.alignment' must be u32, found array of u32");
  for (const uint32_t good : {8u, 64u, 4096u}) {
    GgufBuilder b(1, 1);
    b.Entry("general.alignment", GgufType::kU32, good).Tensor("t", {4}, kGgmlF32, good);
    b.Data(good + 16, good);
    const auto contents = Parse(b.bytes());
    ASSERT_TRUE(contents.ok()) << contents.status().ToString();
    EXPECT_EQ(contents->tensors[0].data.data() + 16,
              reinterpret_cast<const std::byte*>(b.bytes().data() + b.bytes().size()));
  }
}

TEST(GgufParse, RefusesImpossibleShapes) {
  const auto tensor = [](const std::vector<int64_t>& dims, uint32_t type = kGgmlF32) {
    return GgufBuilder(1, 0).Tensor("t", dims, type, 0).Data(64);
  };
  const int64_t big = (int64_t{1} << 42) + 1;
  ExpectCorrupt(tensor({big, big}), "tensor 't' has an impossible shape");
  ExpectCorrupt(tensor({int64_t{1} << 32, int64_t{1} << 32}), "tensor 't' has an impossible shape");
  ExpectCorrupt(tensor({int64_t{1} << 62, 4, 1, 0}), "tensor 't' has an impossible shape");
  ExpectCorrupt(tensor({-1}), "negative dimension");
  ExpectCorrupt(tensor({std::numeric_limits<int64_t>::min(), 2}), "negative dimension");
  ExpectCorrupt(tensor({1, 1, 1, 1, 1}), "tensor 't' has 5 dimensions; at most 4");
  ExpectCorrupt(tensor(std::vector<int64_t>(9, 1)), "tensor 't' has 9 dimensions; at most 4");
  ExpectCorrupt(tensor({33}, kGgmlQ4_0), "a row of 33 elements is not a multiple of 32");
  ExpectCorrupt(tensor({16, 2}, kGgmlQ4_0), "a row of 16 elements is not a multiple of 32");
  ExpectCorrupt(tensor({big}), "tensor 't' needs");
  GgufBuilder dims(1, 0);
  dims.String("name", "t").Number("n_dims", ~0u).Raw(std::string(64, '\0'));
  ExpectCorrupt(dims, "tensor 't' has 4294967295 dimensions; at most 4");
  EXPECT_TRUE(Parse(tensor({}).bytes()).ok());
  EXPECT_TRUE(Parse(tensor({0, 3}).bytes()).ok());
}

TEST(GgufParse, RefusesUnknownTensorTypes) {
  for (const uint32_t type : {4u, 31u, 43u, ~0u}) {
    ExpectError(GgufBuilder(1, 0).Tensor("t", {32}, type, 0).Data(256), StatusCode::kUnimplemented,
                "tensor 't' has type number " + std::to_string(type));
  }
}

TEST(GgufParse, RefusesDataOutsideTheFile) {
  const auto at = [](uint64_t offset, size_t data) {
    return GgufBuilder(1, 0).Tensor("t", {4}, kGgmlF32, offset).Data(data);
  };
  EXPECT_TRUE(Parse(at(0, 16).bytes()).ok());
  ExpectCorrupt(at(0, 15), "tensor 't' needs 16 bytes from 0, but the file holds 15");
  ExpectCorrupt(at(32, 32), "tensor 't' needs 16 bytes from 32, but the file holds 32");
  ExpectCorrupt(at(16, 64), "tensor 't' starts at 16, not a multiple of 32");
  ExpectCorrupt(at(kMaxU64 - 31, 64), "tensor 't' needs 16 bytes from");
  ExpectCorrupt(at(uint64_t{1} << 63, 64), "tensor 't' needs 16 bytes from");
  ExpectCorrupt(GgufBuilder(1, 0).Tensor("t", {4}, kGgmlF32, 0), "but the file holds 0 bytes");
}

TEST(GgufParse, RefusesTensorsThatOverlapOrRepeat) {
  GgufBuilder twice(2, 0);
  twice.Tensor("t", {4}, kGgmlF32, 0).Tensor("t", {4}, kGgmlF32, 32).Data(48);
  ExpectCorrupt(twice, "tensor 't' appears twice");
  GgufBuilder same(2, 0);
  same.Tensor("a", {4}, kGgmlF32, 0).Tensor("b", {4}, kGgmlF32, 0).Data(48);
  ExpectCorrupt(same, "overlaps tensor");
  GgufBuilder inside(2, 0);
  inside.Tensor("b", {4}, kGgmlF32, 32).Tensor("a", {16}, kGgmlF32, 0).Data(64);
  ExpectCorrupt(inside, "tensor 'b' overlaps tensor 'a'");
  GgufBuilder apart(3, 0);  // any order, with a hole, and one without bytes
  apart.Tensor("b", {4}, kGgmlF32, 96).Tensor("a", {4}, kGgmlF32, 0);
  apart.Tensor("none", {0}, kGgmlF32, 0).Data(112);
  EXPECT_TRUE(Parse(apart.bytes()).ok());
}

TEST(GgufParse, KeepsTensorNamesWhole) {
  const auto named = [](const std::string& name) {
    return GgufBuilder(1, 0).Tensor(name, {4}, kGgmlF32, 0).Data(16);
  };
  const std::string longest = std::string(63, 'a') + "z";
  const auto contents = Parse(named(longest).bytes());
  ASSERT_TRUE(contents.ok()) << contents.status().ToString();
  EXPECT_EQ(contents->tensors[0].name, longest);
  ExpectCorrupt(named(longest + "!"), "the name of tensor 0 has 65 bytes; 1 to 64 are allowed");
  ExpectCorrupt(named(""), "the name of tensor 0 has 0 bytes");
}

TEST(GgufParse, EscapesWhatItNames) {
  ExpectCorrupt(GgufBuilder(0, 1).Entry("k\x1b[31m\xff", GgufType::kBool, uint8_t{9}),
                "'k\\x1b[31m\\xff'");
}

}  // namespace
}  // namespace lockstep
