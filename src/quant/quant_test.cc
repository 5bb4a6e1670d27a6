// Expansion and packing against what the reference readers (the Python packages gguf and mlx) make
// of the same blocks. tests/conformance/quant/make_fixtures.py writes the fixtures.
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
#include "quant/mlx_affine/mlx_affine.h"
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
  uint32_t blocks, elements;
  uint32_t block_bytes[kMaxPlanes];
  std::vector<std::byte> planes[kMaxPlanes];
  std::vector<float> values;

  explicit Fixture(const std::string& name) : format(FindFormat(name)) {
    const std::vector<std::byte> bytes = ReadFixture(name);
    blocks = Load<uint32_t>(bytes.data());
    elements = Load<uint32_t>(bytes.data() + 4);
    const std::byte* at = bytes.data() + 8 + sizeof(block_bytes);
    for (int32_t p = 0; p < kMaxPlanes; ++p) {
      block_bytes[p] = Load<uint32_t>(bytes.data() + 8 + 4 * p);
      planes[p].assign(at, at + size_t{blocks} * block_bytes[p]);
      at += planes[p].size();
    }
    values.resize(size_t{blocks} * elements);
    std::memcpy(values.data(), at, values.size() * sizeof(float));
    EXPECT_EQ(bytes.data() + bytes.size(), at + values.size() * sizeof(float));
  }

  // As a matrix: each block a row, or with blocks of one element a few columns.
  Source Matrix(int32_t n) const {
    Source source{format, {}, n, std::max(7, static_cast<int32_t>(elements)), {}};
    for (int32_t p = 0; p < kMaxPlanes; ++p) {
      if (!planes[p].empty()) source.first.plane[p] = planes[p].data();
    }
    return source;
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

// MLX's codes of 8 bits are packed around 128, for which the bias is rounded once more.
bool SamePacked(const Format& format, const BlockRow& row, float packed, float value) {
  if (!format.name.starts_with("MLX_8_") || packed == value) return Same(packed, value);
  const auto magnitude = [&](const std::byte* at) {
    if (format.name.ends_with("_BF16")) return std::fabs(LoadBf16(at));
    return std::fabs(format.name.ends_with("_F16") ? LoadF16(at) : Load<float>(at));
  };
  const float scale = magnitude(row.plane[1]);
  const float bias = magnitude(row.plane[2]);
  if (!std::isfinite(scale) || !std::isfinite(bias)) return !std::isfinite(packed);
  if (std::isinf(packed)) return 255.0 * scale + bias >= 0x1p127;  // out of range on the way
  return std::fabs(double{packed} - value) <= 0x1p-23 * (255.0 * scale + bias);
}

class QuantTest : public testing::TestWithParam<const char*> {};

TEST_P(QuantTest, ExpandsAsTheReferenceReader) {
  const Fixture fixture(GetParam());
  ASSERT_NE(fixture.format, nullptr);
  ASSERT_EQ(fixture.format->block_elements, static_cast<int32_t>(fixture.elements));
  // Blocks stand at any byte in a file.
  std::vector<std::byte> shifted[kMaxPlanes];
  BlockRow row;
  for (int32_t p = 0; p < kMaxPlanes; ++p) {
    ASSERT_EQ(fixture.format->block_bytes[p], static_cast<int32_t>(fixture.block_bytes[p]));
    shifted[p].resize(1);
    shifted[p].insert(shifted[p].end(), fixture.planes[p].begin(), fixture.planes[p].end());
    row.plane[p] = shifted[p].data() + 1;
  }
  std::vector<float> out(fixture.values.size());
  fixture.format->expand(row, fixture.blocks, out.data());
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_TRUE(Same(out[i], fixture.values[i]))
        << i << ": " << out[i] << " for " << fixture.values[i];
  }
}

TEST_P(QuantTest, PacksTheSameValues) {
  const Fixture fixture(GetParam());
  const int32_t k = fixture.Matrix(0).k;
  const int32_t n = std::min<int32_t>(40, static_cast<int32_t>(fixture.values.size()) / k);
  std::vector<int32_t> reversed;
  for (int32_t row = n; row-- > 0;) reversed.push_back(row);
  for (const bool f32 : {false, true}) {
    for (const bool permuted : {false, true}) {
      Source source = fixture.Matrix(n);
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
          ASSERT_TRUE(
              SamePacked(*fixture.format, source.Row(row), PackedValue(w, row, i), values[i]))
              << row << ", " << i << ": " << PackedValue(w, row, i) << " for " << values[i];
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
  const int32_t n = fixture.elements == 1 ? 1 : kRows;
  const Source source = fixture.Matrix(n);
  const int32_t k = source.k;
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

INSTANTIATE_TEST_SUITE_P(MlxAffine, QuantTest,
                         testing::Values("MLX_2_G32_BF16", "MLX_2_G64_BF16", "MLX_2_G128_BF16",
                                         "MLX_2_G64_F16", "MLX_2_G64_F32", "MLX_3_G32_BF16",
                                         "MLX_3_G64_BF16", "MLX_3_G128_BF16", "MLX_3_G64_F16",
                                         "MLX_3_G64_F32", "MLX_4_G32_BF16", "MLX_4_G64_BF16",
                                         "MLX_4_G128_BF16", "MLX_4_G64_F16", "MLX_4_G64_F32",
                                         "MLX_5_G32_BF16", "MLX_5_G64_BF16", "MLX_5_G128_BF16",
                                         "MLX_5_G64_F16", "MLX_5_G64_F32", "MLX_6_G32_BF16",
                                         "MLX_6_G64_BF16", "MLX_6_G128_BF16", "MLX_6_G64_F16",
                                         "MLX_6_G64_F32", "MLX_8_G32_BF16", "MLX_8_G64_BF16",
                                         "MLX_8_G128_BF16", "MLX_8_G64_F16", "MLX_8_G64_F32"),
                         [](const auto& name) { return std::string(name.param); });

// Constants are packed as f16 where it holds them all exactly, which saves a ninth of 4-bit
// weights.
TEST(QuantTest, ConstantsAreAsNarrowAsExactnessAllows) {
  const Fixture fixture("MLX_4_G64_BF16");
  const Source plain = fixture.Matrix(12);  // the blocks with ordinary constants
  const Source edges = fixture.Matrix(24);
  Arena arena;
  auto narrow = PackedWeights::Allocate(plain, false, &arena);
  auto wide = PackedWeights::Allocate(edges, false, &arena);
  ASSERT_TRUE(narrow.ok() && wide.ok());
  EXPECT_FALSE(narrow->matrix().f32_scales);
  EXPECT_TRUE(wide->matrix().f32_scales);
  narrow->PackPanels(plain, 0, 1);
  for (int32_t i = 0; i < plain.k; ++i) {
    ASSERT_TRUE(Same(PackedValue(narrow->matrix(), 3, i), fixture.values[size_t{3} * plain.k + i]));
  }
}

TEST(QuantTest, NamesOfMlxFormats) {
  const Format* format = FindFormat(MlxAffineName(5, 128, "F16"));
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format->name, "MLX_5_G128_F16");
  EXPECT_EQ(FindFormat(MlxAffineName(7, 64, "BF16")), nullptr);
  EXPECT_EQ(FindFormat(MlxAffineName(4, 16, "BF16")), nullptr);
  EXPECT_EQ(FindFormat(MlxAffineName(4, 64, "U8")), nullptr);
}

TEST(QuantTest, UnknownFormatsAreNotFound) {
  EXPECT_EQ(FindFormat("IQ2_XXS"), nullptr);
  EXPECT_EQ(FindFormat(""), nullptr);
}

TEST(QuantTest, RowsOfBrokenBlocksAreRefused) {
  Arena arena;
  const auto packed = PackedWeights::Allocate({FindFormat("Q6_K"), {}, 16, 288, {}}, false, &arena);
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
