#include "weights/gguf.h"

#include <gtest/gtest.h>

#include <string>

#include "weights/gguf_builder_for_test.h"
#include "weights/temp_dir_for_test.h"

namespace lockstep {
namespace {

// Part `number` (from 0) of `count`, holding one tensor called `tensor`.
std::string Part(uint16_t number, uint16_t count, const std::string& tensor, int32_t total) {
  GgufBuilder b(1, 3);
  b.Entry("split.no", GgufType::kU16, number).Entry("split.count", GgufType::kU16, count);
  b.Entry("split.tensors.count", GgufType::kI32, total);
  return b.Tensor(tensor, {4}, kGgmlF32, 0).Data(16).bytes();
}

class SplitGgufTest : public testing::Test {
 protected:
  void ExpectError(const std::string& path, StatusCode code, const std::string& says) {
    const auto file = GgufFile::Open(path);
    ASSERT_FALSE(file.ok()) << says;
    EXPECT_EQ(file.status().code(), code) << file.status().ToString();
    EXPECT_NE(file.status().message().find(says), std::string::npos) << file.status().ToString();
  }
  void WriteOthers() {
    dir_.Write("m-00002-of-00003.gguf", Part(1, 3, "b", 3));
    dir_.Write("m-00003-of-00003.gguf", Part(2, 3, "c", 3));
  }

  TempDir dir_;
  std::string first_ = dir_.Write("m-00001-of-00003.gguf", Part(0, 3, "a", 3));
};

TEST(GgufFile, OpensAndFinds) {
  const TempDir dir;
  const auto file = GgufFile::Open(dir.Write("m.gguf", SmallGguf().bytes()));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ((*file)->tensors().size(), 2u);
  EXPECT_EQ((*file)->FindTensor("second"), &(*file)->tensors()[1]);
  EXPECT_EQ((*file)->FindTensor("third"), nullptr);
  EXPECT_EQ(*(*file)->metadata().GetString("general.architecture"), "llama");
}

TEST_F(SplitGgufTest, OpensAllParts) {
  WriteOthers();
  const auto file = GgufFile::Open(first_);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ((*file)->parts().size(), 3u);
  ASSERT_EQ((*file)->tensors().size(), 3u);
  EXPECT_EQ((*file)->tensors()[2].name, "c");
  EXPECT_NE((*file)->FindTensor("b"), nullptr);
}

TEST_F(SplitGgufTest, NamesTheMissingPart) {
  dir_.Write("m-00002-of-00003.gguf", Part(1, 3, "b", 3));
  ExpectError(first_, StatusCode::kNotFound, "m-00003-of-00003.gguf: No such file");
}

TEST_F(SplitGgufTest, WantsTheFirstPart) {
  WriteOthers();
  ExpectError(dir_.Path("m-00002-of-00003.gguf"), StatusCode::kInvalidArgument,
              "is part 2 of 3 of a split file; open the first part");
}

TEST_F(SplitGgufTest, WantsPartsUnderTheirNames) {
  WriteOthers();
  ExpectError(dir_.Write("renamed.gguf", Part(0, 3, "a", 3)), StatusCode::kInvalidArgument,
              "does not end in -00001-of-00003.gguf");
  dir_.Write("m-00002-of-00003.gguf", Part(2, 3, "b", 3));
  ExpectError(first_, StatusCode::kDataLoss, "says it is part 3 of 3, but its name says 2 of 3");
}

TEST_F(SplitGgufTest, RefusesTensorsInTwoPartsAndWrongTotals) {
  WriteOthers();
  dir_.Write("m-00002-of-00003.gguf", Part(1, 3, "a", 3));
  ExpectError(first_, StatusCode::kDataLoss, "tensor 'a' is in two parts");
  WriteOthers();
  ExpectError(dir_.Write("m-00001-of-00003.gguf", Part(0, 3, "a", 4)), StatusCode::kDataLoss,
              "says 4 tensors, but the 3 parts hold 3");
}

TEST_F(SplitGgufTest, SaysWhichPartIsCorrupt) {
  WriteOthers();
  const std::string cut = Part(2, 3, "c", 3);
  dir_.Write("m-00003-of-00003.gguf", cut.substr(0, cut.size() - 1));
  ExpectError(first_, StatusCode::kDataLoss, "m-00003-of-00003.gguf: tensor 'c' needs 16 bytes");
}

}  // namespace
}  // namespace lockstep
