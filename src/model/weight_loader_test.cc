// Matrices that are taken apart at load, against the checkpoint's rows as their format expands
// them.
#include "model/weight_loader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "quant/packed_weights.h"

namespace lockstep {
namespace {

constexpr int32_t kHeads = 2, kTurned = 16, kRest = 16;
constexpr const char* kName = "model.layers.0.self_attn.v_proj.weight";

// Element [n][k] of a matrix that is packed as floats.
float At(const kernels::PackedMatrix& m, int32_t n, int32_t k) {
  const size_t index = size_t(k) * kernels::kPanel + n % kernels::kPanel;
  const std::byte* panel = m.data + n / kernels::kPanel * m.panel_bytes;
  const int32_t size = m.code == kernels::WeightCode::kF32 ? 4 : 2;
  uint32_t bits = 0;
  std::memcpy(&bits, panel + index * size, size);
  if (m.code == kernels::WeightCode::kBF16) bits <<= 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

class Turned : public testing::TestWithParam<const char*> {};

TEST_P(Turned, PartsAreTheRowsOfTheWhole) {
  const auto checkpoint = Checkpoint::Open(std::string(LOCKSTEP_CHECKPOINTS "/") + GetParam());
  ASSERT_TRUE(checkpoint.ok());
  const auto storage = StorageOf(**checkpoint);
  ASSERT_TRUE(storage.ok());
  const int32_t k = (*checkpoint)->Find("model.norm.weight")->shape[0];
  const auto stored = (*storage)->Find(**checkpoint, kName, kHeads * (kTurned + kRest), k, 0);
  ASSERT_TRUE(stored.ok()) << stored.status().ToString();

  ThreadPool pool(1);
  auto loader = WeightLoader::Create(*checkpoint, {ComputeClass::kAuto, &pool, ""});
  ASSERT_TRUE(loader.ok());
  const auto parts = loader->LoadTurned(kName, kHeads, kTurned, kRest, k);
  ASSERT_TRUE(parts.ok()) << parts.status().ToString();
  const auto whole = loader->LoadLinear(kName, kHeads * (kTurned + kRest), k, {});
  ASSERT_TRUE(whole.ok());
  std::vector<float> row(k);
  for (int32_t h = 0; h < kHeads; ++h) {
    const kernels::PackedMatrix& turned = parts->turned[h].matrix;
    const kernels::PackedMatrix& rest = parts->rest[h].matrix;
    ASSERT_EQ(turned.n, k);
    ASSERT_EQ(turned.k, kTurned);
    ASSERT_EQ(rest.n, kRest);
    ASSERT_EQ(rest.k, k);
    EXPECT_FALSE(parts->turned[h].integer());
    for (int32_t r = 0; r < kTurned; ++r) {
      quant::ExpandRow(stored->source, h * (kTurned + kRest) + r, row.data());
      for (int32_t c = 0; c < k; ++c) ASSERT_EQ(At(turned, c, r), row[c]) << h << " " << r;
    }
    // The rest is packed as the whole is: its panel, bit for bit.
    EXPECT_EQ(rest.code, whole->matrix.code);
    const std::byte* panel =
        whole->matrix.data + (h * (kTurned + kRest) + kTurned) / 16 * rest.panel_bytes;
    EXPECT_EQ(std::memcmp(rest.data, panel, rest.panel_bytes), 0) << h;
  }
}

// v has 64 rows in each: floats, and codes of 8 and of 4 bits.
INSTANTIATE_TEST_SUITE_P(All, Turned,
                         testing::Values("tiny-llama-bf16", "tiny-llama-mlx-mixed",
                                         "tiny-llama-mlx-4-g64"));

TEST(TurnedMatrices, PartsThatAreNoWholePanelsAreRefused) {
  const auto checkpoint = Checkpoint::Open(LOCKSTEP_CHECKPOINTS "/tiny-llama-bf16");
  ASSERT_TRUE(checkpoint.ok());
  ThreadPool pool(1);
  auto loader = WeightLoader::Create(*checkpoint, {ComputeClass::kAuto, &pool, ""});
  ASSERT_TRUE(loader.ok());
  const auto parts = loader->LoadTurned(kName, 4, 8, 8, 64);
  EXPECT_EQ(parts.status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(parts.status().param(), kName);
}

}  // namespace
}  // namespace lockstep
