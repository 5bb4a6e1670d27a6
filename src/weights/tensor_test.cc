#include "weights/tensor.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

namespace lockstep {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

uint64_t Bytes(DType dtype, const std::vector<int64_t>& shape) {
  const auto bytes = TensorBytes(dtype, shape);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return bytes.ok() ? *bytes : 0;
}

TEST(Tensor, NamesAreUnique) {
  std::set<std::string_view> names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_TRUE(names.insert(DTypeName(dtype)).second) << DTypeName(dtype);
    EXPECT_GT(DTypeBlock(dtype).elements, 0u);
    EXPECT_GT(DTypeBlock(dtype).bytes, 0u);
  }
}

TEST(Tensor, BytesOfPlainAndBlockTypes) {
  EXPECT_EQ(Bytes(DType::kF32, {}), 4u);
  EXPECT_EQ(Bytes(DType::kBF16, {3, 5}), 30u);
  EXPECT_EQ(Bytes(DType::kF32, {0, 7}), 0u);
  EXPECT_EQ(Bytes(DType::kQ4_1, {2, 64}), 80u);
  EXPECT_EQ(Bytes(DType::kQ6_K, {3, 512}), 1260u);
  EXPECT_EQ(Bytes(DType::kF4, {3, 2}), 3u);
  EXPECT_EQ(Bytes(DType::kF6E2M3, {2, 2}), 3u);
}

TEST(Tensor, RefusesRowsThatAreNotWholeBlocks) {
  // 64 elements are two blocks, but each row is half a one.
  EXPECT_FALSE(TensorBytes(DType::kQ8_0, std::vector<int64_t>{4, 16}).ok());
  EXPECT_FALSE(TensorBytes(DType::kQ8_0, std::vector<int64_t>{}).ok());
  EXPECT_FALSE(TensorBytes(DType::kF4, std::vector<int64_t>{3, 3}).ok());
}

TEST(Tensor, RefusesShapesThatOverflow) {
  const int64_t root = int64_t{1} << 32;
  EXPECT_EQ(*ElementCount(std::vector<int64_t>{kMax}), kMax);
  EXPECT_FALSE(ElementCount(std::vector<int64_t>{root, root}).ok());
  EXPECT_FALSE(ElementCount(std::vector<int64_t>{root, root, 0}).ok());
  EXPECT_FALSE(ElementCount(std::vector<int64_t>{0, root, root}).ok());
  EXPECT_FALSE(ElementCount(std::vector<int64_t>{-1}).ok());
  EXPECT_FALSE(ElementCount(std::vector<int64_t>{0, -1}).ok());
  EXPECT_FALSE(TensorBytes(DType::kF64, std::vector<int64_t>{kMax}).ok());
  EXPECT_EQ(*ElementCount(std::vector<int64_t>{0, kMax}), 0);
}

TEST(Tensor, WithdrawnAndUnknownTypesHaveNoName) {
  for (const uint32_t id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 0xffffffffu}) {
    EXPECT_FALSE(DTypeFromGguf(id)) << id;
  }
  EXPECT_FALSE(DTypeFromSafetensors("F99"));
  EXPECT_FALSE(DTypeFromSafetensors("Q4_0"));
  EXPECT_FALSE(DTypeFromSafetensors(""));
}

}  // namespace
}  // namespace lockstep
