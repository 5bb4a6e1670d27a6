#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "weights/temp_dir_for_test.h"

namespace lockstep {
namespace {

std::string File(const std::string& header, const std::string& data = {}) {
  const uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  return bytes + header + data;
}

Result<SafetensorsContents> Parse(const std::string& bytes) {
  return ParseSafetensors(std::as_bytes(std::span(bytes)), "m.safetensors");
}

void ExpectError(const std::string& bytes, const std::string& says,
                 StatusCode code = StatusCode::kDataLoss) {
  const auto result = Parse(bytes);
  ASSERT_FALSE(result.ok()) << says;
  const std::string& message = result.status().message();
  EXPECT_EQ(result.status().code(), code) << message;
  EXPECT_TRUE(message.starts_with("m.safetensors: ")) << message;
  EXPECT_NE(message.find(says), std::string::npos) << message;
}

// A file with one F32 tensor 't' of `shape` and `offsets` over `data` bytes.
std::string Tensor(const std::string& shape, const std::string& offsets, size_t data) {
  return File(R"({"t":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
              std::string(data, 'd'));
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  const std::string bytes =
      File(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
           R"("__metadata__":{"format":"pt","x":""},)"
           R"("a":{"shape":[3,1],"extra":[1],"dtype":"U8","data_offsets":[0,3]},)"
           R"("none":{"dtype":"F16","shape":[0,7],"data_offsets":[3,3]}}   )",
           "abcdefghijk");
  const auto contents = Parse(bytes);
  ASSERT_TRUE(contents.ok()) << contents.status().ToString();
  EXPECT_EQ(contents->metadata,
            (std::vector<std::pair<std::string, std::string>>{{"format", "pt"}, {"x", ""}}));
  ASSERT_EQ(contents->tensors.size(), 3u);
  EXPECT_EQ(contents->tensors[0].name, "a");
  EXPECT_EQ(contents->tensors[0].shape, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(contents->tensors[1].name, "none");
  EXPECT_EQ(contents->tensors[2].name, "b");
  EXPECT_EQ(contents->tensors[2].data.size(), 8u);
  EXPECT_EQ(static_cast<char>(contents->tensors[2].data[0]), 'd');
}

TEST(Safetensors, ReadsScalarsAndEmptyFiles) {
  EXPECT_TRUE(Parse(File("{}")).ok());
  EXPECT_TRUE(Parse(File(R"({"__metadata__":{}})")).ok());
  EXPECT_TRUE(Parse(Tensor("[]", "[0,4]", 4)).ok());
}

TEST(Safetensors, RefusesImpossibleHeaderLengths) {
  ExpectError("", "too short");
  ExpectError("1234567", "too short");
  for (const uint64_t length : {~uint64_t{0} - 2, ~uint64_t{0}, uint64_t{1} << 63,
                                uint64_t{100'000'001}, uint64_t{1} << 32}) {
    std::string bytes = File("{}");
    std::memcpy(bytes.data(), &length, sizeof(length));
    ExpectError(bytes,
                "claims a header of " + std::to_string(length) + " bytes; at most 100000000");
  }
  std::string bytes = File("{}");
  bytes[0] = 3;
  ExpectError(bytes, "claims a header of 3 bytes, but only 2 follow");
  bytes[0] = 0;
  ExpectError(bytes, "the header is not JSON");
}

TEST(Safetensors, RefusesHeadersThatAreNoObject) {
  for (const char* header : {"", " ", "{", "}", "{]", "tru", "{\"a\":1,}", "{}{}"}) {
    ExpectError(File(header), "the header is not JSON");
  }
  ExpectError(File(std::string("{}\0", 3)), "the header is not JSON");
  ExpectError(File("{\"\xff\":1}"), "the header is not JSON");
  ExpectError(File(std::string(5000, '[')), "the header is not JSON");
  for (const char* header : {"[]", "1", "\"x\"", "null"}) {
    ExpectError(File(header), "the header is not a JSON object");
  }
}

TEST(Safetensors, RefusesMalformedMetadata) {
  ExpectError(File(R"({"__metadata__":[]})"), "__metadata__ is not an object");
  ExpectError(File(R"({"__metadata__":{"k":1}})"), "__metadata__ key 'k' is not a string");
  ExpectError(File(R"({"__metadata__":{"k":"1","k":"2"}})"), "__metadata__ key 'k' appears twice");
}

TEST(Safetensors, RefusesMalformedTensors) {
  const std::string tail = R"("shape":[1],"data_offsets":[0,4]}})";
  ExpectError(File(R"({"t":4})"), "tensor 't' is not described by an object");
  ExpectError(File(R"({"t":{)" + tail, "1234"), "tensor 't' has no 'dtype'");
  ExpectError(File(R"({"t":{"dtype":"F32","data_offsets":[0,4]}})", "1234"), "has no 'shape'");
  ExpectError(File(R"({"t":{"dtype":"F32","shape":[1]}})", "1234"), "has no 'data_offsets'");
  ExpectError(File(R"({"t":{"dtype":"F32","dtype":"F32",)" + tail, "1234"), "has 'dtype' twice");
  ExpectError(File(R"({"t":{"dtype":1,)" + tail, "1234"), "'dtype' that is not a string");
  ExpectError(File(R"({"t":{"dtype":"F99",)" + tail, "1234"),
              "tensor 't' has the unknown dtype 'F99'", StatusCode::kUnimplemented);
  const std::string one = R"("t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  ExpectError(File("{" + one + "," + one + "}", "1234"), "tensor 't' appears twice");
}

TEST(Safetensors, RefusesImpossibleShapes) {
  for (const char* shape : {"[-1]", "[1.0]", "[\"1\"]", "[null]", "[9223372036854775808]", "[[1]]",
                            "[1e3]", "[true]"}) {
    ExpectError(Tensor(shape, "[0,4]", 4), "an element that is not an integer from 0 up");
  }
  ExpectError(Tensor("4", "[0,4]", 4), "'shape' that is not an array");
  ExpectError(Tensor("[4294967296,4294967296]", "[0,0]", 0), "impossible shape");
  ExpectError(Tensor("[0,4294967296,4294967296]", "[0,0]", 0), "impossible shape");
  ExpectError(Tensor("[4611686018427387904]", "[0,0]", 0), "has more than 2^64 bytes");
}

TEST(Safetensors, RefusesImpossibleOffsets) {
  ExpectError(Tensor("[1000,1000]", "[0,4]", 4), "takes 4000000 bytes as F32 [1000, 1000], but");
  ExpectError(Tensor("[1]", "[8,4]", 8), "data_offsets [8, 4] in reverse");
  for (const char* offsets : {"[-8,8]", "[]", "[0]", "[0,4,8]", "[0.0,4]", "[\"0\",4]", "[0,null]",
                              "[0,18446744073709551616]"}) {
    const auto result = Parse(Tensor("[1]", offsets, 8));
    ASSERT_FALSE(result.ok()) << offsets;
    EXPECT_EQ(result.status().code(), StatusCode::kDataLoss);
  }
  ExpectError(Tensor("[1]", "[]", 4), "not two integers from 0 up");
  ExpectError(Tensor("[1]", "[-8,8]", 8), "not two integers from 0 up");
  ExpectError(Tensor("[1]", "4", 4), "'data_offsets' that are not an array");
  ExpectError(Tensor("[2]", "[0,8]", 4), "data_offsets [0, 8], but the file holds 4 bytes");
  ExpectError(Tensor("[1]", "[18446744073709551612,18446744073709551615]", 4),
              "but the file holds 4");
}

TEST(Safetensors, RefusesOverlapsHolesAndTrailingBytes) {
  const auto two = [](const std::string& a, const std::string& b, size_t data) {
    return File(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                    R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                std::string(data, 'd'));
  };
  EXPECT_TRUE(Parse(two("[0,4]", "[4,8]", 8)).ok());
  EXPECT_TRUE(Parse(two("[4,8]", "[0,4]", 8)).ok());
  ExpectError(two("[0,4]", "[2,6]", 6), "tensor 'b' overlaps tensor 'a'");
  ExpectError(two("[0,4]", "[0,4]", 4), "overlaps tensor");
  ExpectError(two("[0,4]", "[5,9]", 9), "tensor 'b' starts at 5, after a hole from 4");
  ExpectError(two("[1,5]", "[5,9]", 9), "tensor 'a' starts at 1, after a hole from 0");
  ExpectError(two("[0,4]", "[4,8]", 9), "holds 9 bytes of data, but its tensors take 8");
  ExpectError(File("{}", "x"), "holds 1 bytes of data, but its tensors take 0");
}

TEST(Safetensors, OpensAndFinds) {
  const TempDir dir;
  const auto file = SafetensorsFile::Open(dir.Write("m.safetensors", Tensor("[1]", "[0,4]", 4)));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ((*file)->FindTensor("t"), &(*file)->tensors()[0]);
  EXPECT_EQ((*file)->FindTensor("u"), nullptr);
  const auto missing = SafetensorsFile::Open(dir.Path("none"));
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace lockstep
