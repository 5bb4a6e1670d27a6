// Expansion and packing against what the reference reader (the Python package gguf) makes of the
// same blocks. tests/conformance/quant/make_fixtures.py writes the fixtures.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/half.h"
#include "kernels/generic/gemm_layout.h"
#include "kernels/kernels.h"
#include "quant/bytes.h"
#include "quant/packed_weights.h"

namespace lockstep::quant {
namespace {

using kernels::PackedMatrix;
using kernels::WeightCode;

std::vector<std::byte> ReadFixture(const std::string& name) {
  std::ifstream file(std::string(LOCKSTEP_FIXTURES) + "/" + name + ".bin", std::ios::binary);
  const std::vector<char> chars((std::istreambuf_iterator<char>(file)), {});
  EXPECT_FALSE(chars.empty()) << name;
  std::vector<std::byte> bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

struct Fixture {
  const Format* format;
  uint32_t blocks, elements, block_bytes;
  std::vector<std::byte> data;
  std::vector<float> values;

  explicit Fixture(const std::string& name) : format(FindFormat(name)) {
    const std::vector<std::byte> bytes = ReadFixture(name);
    blocks = Load<uint32_t>(bytes.data());
    elements = Load<uint32_t>(bytes.data() + 4);
    block_bytes = Load<uint32_t>(bytes.data() + 8);
    const std::byte* at = bytes.data() + 12;
    data.assign(at, at + size_t{blocks} * block_bytes);
    values.resize(size_t{blocks} * elements);
    std::memcpy(values.data(), at + data.size(), values.size() * sizeof(float));
    EXPECT_EQ(bytes.size(), 12 + data.size() + values.size() * sizeof(float));
  }
};

// The same bits, but that one NaN is as good as another.
bool Same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// Weight k of output n, read from the layout of gemm_layout.h.
float PackedValue(const PackedMatrix& w, int32_t n, int32_t k) {
  const std::byte* panel = w.data + n / 16 * w.panel_bytes;
  const int32_t j = n % 16;
  if (!kernels::IsIntegerCode(w.code)) {
    const int32_t at = k * 16 + j;
    if (w.code == WeightCode::kF32) return Load<float>(panel + at * 4);
    const auto half = Load<uint16_t>(panel + at * 2);
    return w.code == WeightCode::kF16 ? F16ToF32(half) : BF16ToF32(half);
  }
  const std::byte* group = panel + k / w.group * kernels::GroupBytes(w);
  const int32_t i = k % w.group;
  int32_t code;
  if (w.code == WeightCode::kU4) {
    const auto byte = Load<uint8_t>(group + i % 16 / 4 * 64 + j * 4 + i % 4);
    code = i < 16 ? byte & 15 : byte >> 4;
  } else {
    code = Load<int8_t>(group + i / 4 * 64 + j * 4 + i % 4);
  }
  group += kernels::GroupCodeBytes(w.code, w.group);
  const auto constant = [&](int32_t index) {
    const int32_t at = index * 16 + j;
    return w.f32_scales ? Load<float>(group + at * 4) : LoadF16(group + at * 2);
  };
  const float value = constant(0) * static_cast<float>(code - w.zero);
  return w.has_min ? value + constant(1) : value;
}

class QuantTest : public testing::TestWithParam<const char*> {};

TEST_P(QuantTest, ExpandsAsTheReferenceReader) {
  const Fixture fixture(GetParam());
  ASSERT_NE(fixture.format, nullptr);
  ASSERT_EQ(fixture.format->block_elements, static_cast<int32_t>(fixture.elements));
  ASSERT_EQ(fixture.format->block_bytes, static_cast<int32_t>(fixture.block_bytes));
  // Blocks stand at any byte in a file.
  std::vector<std::byte> shifted(1);
  shifted.insert(shifted.end(), fixture.data.begin(), fixture.data.end());
  std::vector<float> out(fixture.values.size());
  fixture.format->expand(shifted.data() + 1, fixture.blocks, out.data());
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_TRUE(Same(out[i], fixture.values[i]))
        << i << ": " << out[i] << " for " << fixture.values[i];
  }
}

// The fixture as a matrix: each block a row, or with blocks of one element a few columns.
TEST_P(QuantTest, PacksTheSameValues) {
  const Fixture fixture(GetParam());
  const int32_t k = std::max(7, static_cast<int32_t>(fixture.elements));
  const int32_t n = std::min<int32_t>(40, static_cast<int32_t>(fixture.values.size()) / k);
  std::vector<int32_t> reversed;
  for (int32_t row = n; row-- > 0;) reversed.push_back(row);
  for (const bool f32 : {false, true}) {
    for (const bool permuted : {false, true}) {
      Source source{fixture.format, fixture.data.data(), n, k, {}};
      if (permuted) source.rows = reversed;
      Arena arena;
      auto packed = PackedWeights::Allocate(source, f32, &arena);
      ASSERT_TRUE(packed.ok());
      const PackedMatrix& w = packed->matrix();
      EXPECT_EQ(kernels::IsIntegerCode(w.code), fixture.format->integer() && !f32);
      for (int32_t panel = 0; panel < w.panels(); ++panel) {
        packed->PackPanels(source, panel, panel + 1);
      }
      std::vector<float> expanded(k);
      for (int32_t row = 0; row < n; ++row) {
        const float* values = &fixture.values[size_t(permuted ? n - 1 - row : row) * k];
        ExpandRow(source, row, expanded.data());
        for (int32_t i = 0; i < k; ++i) {
          ASSERT_TRUE(Same(PackedValue(w, row, i), values[i])) << row << ", " << i;
          ASSERT_TRUE(Same(expanded[i], values[i])) << row << ", " << i;
        }
      }
      for (int32_t row = n; row < w.panels() * 16; ++row) {
        for (int32_t i = 0; i < k; ++i) ASSERT_EQ(PackedValue(w, row, i), 0.0f);
      }
    }
  }
}

// A row of one 1 and zeros picks a column: layout, packing and kernels agree with each other.
TEST_P(QuantTest, ProductsPickColumns) {
  const Fixture fixture(GetParam());
  constexpr int32_t kRows = 11;  // the blocks with ordinary scales
  const int32_t k = std::max(7, static_cast<int32_t>(fixture.elements));
  const int32_t n = fixture.elements == 1 ? 1 : kRows;
  const Source source{fixture.format, fixture.data.data(), n, k, {}};
  Arena arena;
  auto packed = PackedWeights::Allocate(source, /*f32=*/true, &arena);
  ASSERT_TRUE(packed.ok());
  const PackedMatrix& w = packed->matrix();
  packed->PackPanels(source, 0, w.panels());
  auto scratch = Buffer::Allocate(kernels::GemmScratchBytes(w), "scratch");
  ASSERT_TRUE(scratch.ok());
  for (const kernels::KernelTable* table : kernels::SupportedTables()) {
    for (int32_t i = 0; i < k; ++i) {
      std::vector<float> x(k, 0.0f), out(16);
      x[i] = 1.0f;
      table->gemm.gemm_float(w, x.data(), k, {0, 1, 0, 1}, {}, out.data(), 16, scratch->data());
      for (int32_t row = 0; row < n; ++row) {
        ASSERT_EQ(out[row], fixture.values[size_t(row) * k + i]) << table->isa;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantTest,
                         testing::Values("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1",
                                         "Q8_0", "Q4_K", "Q5_K", "Q6_K"),
                         [](const auto& name) { return std::string(name.param); });

TEST(QuantTest, UnknownFormatsAreNotFound) {
  EXPECT_EQ(FindFormat("IQ2_XXS"), nullptr);
  EXPECT_EQ(FindFormat(""), nullptr);
}

TEST(QuantTest, RowsOfBrokenBlocksAreRefused) {
  Arena arena;
  const auto packed =
      PackedWeights::Allocate({FindFormat("Q6_K"), nullptr, 16, 288, {}}, false, &arena);
  ASSERT_FALSE(packed.ok());
  EXPECT_EQ(packed.status().code(), StatusCode::kInvalidArgument);
}

TEST(HalfTest, RoundsAsTheReferences) {
  const std::vector<std::byte> bytes = ReadFixture("rounding");
  const auto count = Load<uint32_t>(bytes.data());
  const std::byte* f32 = bytes.data() + 4;
  const std::byte* f16 = f32 + size_t{4} * count;
  const std::byte* bf16 = f16 + size_t{2} * count;
  for (uint32_t i = 0; i < count; ++i) {
    const auto value = Load<float>(f32 + 4 * i);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(F16ToF32(F32ToF16(value))));
      EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(value))));
      continue;
    }
    ASSERT_EQ(F32ToF16(value), Load<uint16_t>(f16 + 2 * i)) << value;
    ASSERT_EQ(F32ToBF16(value), Load<uint16_t>(bf16 + 2 * i)) << value;
  }
}

}  // namespace
}  // namespace lockstep::quant
