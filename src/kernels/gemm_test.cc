// Every table against the definition in gemm.h, written here naively, bit for bit.
#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "kernels/generic/gemm_layout.h"
#include "kernels/kernels.h"
#include "kernels/testing/gemm_reference.h"

namespace lockstep::kernels {
namespace {

constexpr float kUntouched = -12345.0f;

// A product of some rows: rows x, the range, and where it goes.
using Product =
    std::function<void(const GemmRange&, const GemmEpilogue&, float* out, int64_t stride)>;

int64_t Stride(const PackedMatrix& w) { return int64_t{w.panels()} * kPanel + 5; }

std::vector<float> Multiply(const Product& product, const PackedMatrix& w, int32_t rows,
                            const GemmRange& range, const GemmEpilogue& epilogue = {}) {
  std::vector<float> out(static_cast<size_t>(rows) * Stride(w), kUntouched);
  product(range, epilogue, out.data(), Stride(w));
  return out;
}

GemmRange All(const PackedMatrix& w, int32_t rows) { return {0, rows, 0, w.panels()}; }

Product IntProduct(const KernelTable& table, const Weights& w, Rows& x) {
  return [&](const GemmRange& range, const GemmEpilogue& epilogue, float* out, int64_t stride) {
    Bytes scratch(GemmScratchBytes(w.packed));
    table.gemm.gemm_int(w.packed, x.view(), range, epilogue, out, stride, scratch.data());
  };
}
Product FloatProduct(const KernelTable& table, const Weights& w, const std::vector<float>& x) {
  return [&](const GemmRange& range, const GemmEpilogue& epilogue, float* out, int64_t stride) {
    Bytes scratch(GemmScratchBytes(w.packed));
    table.gemm.gemm_float(w.packed, x.data(), w.k, range, epilogue, out, stride, scratch.data());
  };
}

bool Same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

// The first difference between a product of `rows` rows and each of its rows computed alone; empty
// when there is none.
std::string RowsAlone(const Product& product, const PackedMatrix& w, int32_t rows) {
  const std::vector<float> together = Multiply(product, w, rows, All(w, rows));
  for (int32_t row = 0; row < rows; ++row) {
    const std::vector<float> alone = Multiply(product, w, rows, {row, row + 1, 0, w.panels()});
    for (int32_t n = 0; n < w.n; ++n) {
      const size_t at = static_cast<size_t>(row) * Stride(w) + n;
      if (!Same(together[at], alone[at])) {
        return "row " + std::to_string(row) + " output " + std::to_string(n);
      }
    }
  }
  return {};
}

class GemmTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
};

std::vector<Format> AllFormats() {
  std::vector<Format> all(std::begin(kIntFormats), std::end(kIntFormats));
  all.insert(all.end(), std::begin(kFloatFormats), std::end(kFloatFormats));
  return all;
}

// Calls `check` with a product of this table and the reference of each of its outputs.
void WithProduct(const KernelTable& table, const Weights& w, int32_t rows, uint32_t seed,
                 const std::function<void(const Product&,
                                          const std::function<float(int32_t, int32_t)>&)>& check) {
  const std::vector<float> x = RandomRows(rows, w.k, seed);
  if (!IsIntegerCode(w.format.code)) {
    check(FloatProduct(table, w, x),
          [&](int32_t row, int32_t n) { return ReferenceFloat(w, x, row, n); });
    return;
  }
  Rows quantized = ReferenceQuantize(x, rows, w.k);
  check(IntProduct(table, w, quantized),
        [&](int32_t row, int32_t n) { return ReferenceInt(w, quantized, row, n); });
}

TEST_P(GemmTest, EqualsTheDefinition) {
  for (const Format& format : AllFormats()) {
    const bool floats = !IsIntegerCode(format.code);
    for (const auto& [n, k] : {std::pair{33, floats ? 37 : 96}, {16, 544}, {5, 32}}) {
      const Weights w(format, n, k, 7);
      for (int32_t rows = 1; rows <= 70; rows += rows < 12 ? 1 : 29) {
        WithProduct(table(), w, rows, 11, [&](const Product& product, const auto& reference) {
          const std::vector<float> out = Multiply(product, w.packed, rows, All(w.packed, rows));
          for (int32_t row = 0; row < rows; ++row) {
            for (int32_t i = 0; i < n; ++i) {
              const float got = out[static_cast<size_t>(row) * Stride(w.packed) + i];
              ASSERT_TRUE(Same(got, reference(row, i)))
                  << format.name << " n " << n << " k " << k << " rows " << rows << " at " << row
                  << ", " << i << ": " << got << " for " << reference(row, i);
            }
          }
        });
      }
    }
  }
}

TEST_P(GemmTest, RangesWriteTheirShareOnly) {
  std::mt19937 random(3);
  for (const Format& format : AllFormats()) {
    const Weights w(format, 100, 96, 5);
    constexpr int32_t kRows = 70;
    WithProduct(table(), w, kRows, 13, [&](const Product& product, const auto&) {
      const std::vector<float> all = Multiply(product, w.packed, kRows, All(w.packed, kRows));
      for (int trial = 0; trial < 20; ++trial) {
        GemmRange range;
        range.row_begin = static_cast<int32_t>(random() % kRows);
        range.row_end =
            range.row_begin + static_cast<int32_t>(random() % (kRows + 1 - range.row_begin));
        range.panel_begin = static_cast<int32_t>(random() % 7);
        range.panel_end =
            range.panel_begin + static_cast<int32_t>(random() % (8 - range.panel_begin));
        const std::vector<float> out = Multiply(product, w.packed, kRows, range);
        for (int32_t row = 0; row < kRows; ++row) {
          for (int32_t i = 0; i < Stride(w.packed); ++i) {
            const size_t at = static_cast<size_t>(row) * Stride(w.packed) + i;
            const bool inside = row >= range.row_begin && row < range.row_end &&
                                i / kPanel >= range.panel_begin && i / kPanel < range.panel_end;
            ASSERT_TRUE(Same(out[at], inside ? all[at] : kUntouched)) << format.name;
          }
        }
      }
    });
  }
}

TEST_P(GemmTest, RowsDoNotDependOnTheirNeighbours) {
  for (const Format& format : AllFormats()) {
    const Weights w(format, 80, 640, 17);
    for (const int32_t rows : {2, 3, 4, 5, 7, 9, 16, 70}) {
      WithProduct(table(), w, rows, 19, [&](const Product& product, const auto&) {
        EXPECT_EQ(RowsAlone(product, w.packed, rows), "") << format.name << " rows " << rows;
      });
    }
  }
}

// The check above finds a kernel that splits K when there is one row.
TEST_P(GemmTest, ADependentKernelIsFound) {
  const Weights w(kFloatFormats[0], 32, 640, 17);
  const std::vector<float> x = RandomRows(4, w.k, 19);
  const Product split = [&](const GemmRange& range, const GemmEpilogue&, float* out,
                            int64_t stride) {
    for (int32_t row = range.row_begin; row < range.row_end; ++row) {
      for (int32_t n = 0; n < w.n; ++n) {
        float half[2] = {0.0f, 0.0f};
        for (int32_t k = 0; k < w.k; ++k) {
          float& acc = half[range.row_end - range.row_begin == 1 ? k % 2 : 0];
          acc = std::fma(x[static_cast<size_t>(row) * w.k + k],
                         w.values[static_cast<size_t>(n) * w.k + k], acc);
        }
        out[row * stride + n] = half[0] + half[1];
      }
    }
  };
  EXPECT_NE(RowsAlone(split, w.packed, 4), "");
}

TEST_P(GemmTest, ExtremeCodesDoNotSaturate) {
  for (const Format& format : kIntFormats) {
    const Weights w(format, 32, 320, 23, /*extreme=*/true);
    for (const int32_t rows : {1, 4, 5, 20}) {
      Rows x(rows, w.k);
      for (size_t i = 0; i < x.codes.size(); ++i) {
        x.codes[i] = i / w.k % 2 == 0 ? 127 : -127;
        x.sums[i / 16] += x.codes[i];
      }
      for (float& scale : x.scales) scale = 0.37f;
      const std::vector<float> out =
          Multiply(IntProduct(table(), w, x), w.packed, rows, All(w.packed, rows));
      for (int32_t row = 0; row < rows; ++row) {
        for (int32_t n = 0; n < w.n; ++n) {
          ASSERT_TRUE(Same(out[row * Stride(w.packed) + n], ReferenceInt(w, x, row, n)))
              << format.name;
        }
      }
    }
  }
}

TEST_P(GemmTest, Epilogues) {
  for (const Format& format : AllFormats()) {
    const Weights w(format, 40, 96, 29);
    const std::vector<float> bias = RandomRows(1, w.packed.panels() * kPanel, 31);
    for (const int32_t rows : {1, 3, 21}) {
      WithProduct(table(), w, rows, 37, [&](const Product& product, const auto& reference) {
        for (const GemmEpilogue epilogue :
             {GemmEpilogue{bias.data(), false}, {nullptr, true}, {bias.data(), true}}) {
          const std::vector<float> out =
              Multiply(product, w.packed, rows, All(w.packed, rows), epilogue);
          for (int32_t row = 0; row < rows; ++row) {
            for (int32_t n = 0; n < w.n; ++n) {
              float want = reference(row, n);
              if (epilogue.bias != nullptr) want = want + bias[n];
              if (epilogue.add) want = kUntouched + want;
              ASSERT_TRUE(Same(out[row * Stride(w.packed) + n], want)) << format.name;
            }
          }
        }
      });
    }
  }
}

TEST_P(GemmTest, Quantize) {
  constexpr int32_t kRows = 9, kDepth = 96;
  std::vector<float> x = RandomRows(kRows, kDepth, 41);
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float max = std::numeric_limits<float>::max();
  const auto fill = [&](int32_t group, std::vector<float> values) {
    for (size_t i = 0; i < 32; ++i) x[group * 32 + i] = values[i % values.size()];
  };
  fill(0, {0.0f, -0.0f});
  fill(1, {1.0f, -127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.5f});  // ties
  fill(2, {max, -max, max / 2});
  fill(3, {0x1p-149f, -0x1p-126f});
  fill(4, {0x1p-119f, -0x1p-120f});
  fill(5, {1.0f, inf});
  fill(6, {-inf, inf});
  fill(7, {1.0f, 2.0f, nan, 3.0f});
  fill(8, {-nan, inf, 0.0f});
  fill(9, {std::nextafter(0x1p-119f, 0.0f)});
  const Rows want = ReferenceQuantize(x, kRows, kDepth);
  Rows got(kRows, kDepth);
  table().gemm.quantize(x.data(), kDepth, 0, 4, got.view());
  table().gemm.quantize(x.data(), kDepth, 4, kRows, got.view());
  EXPECT_EQ(got.codes, want.codes);
  EXPECT_EQ(got.sums, want.sums);
  for (size_t i = 0; i < want.scales.size(); ++i) {
    EXPECT_TRUE(Same(got.scales[i], want.scales[i]) ||
                (std::isnan(got.scales[i]) && std::isnan(want.scales[i])))
        << "group " << i;
  }
}

TEST_P(GemmTest, ABadActivationPoisonsItsRowOnly) {
  for (const Format& format : AllFormats()) {
    const Weights w(format, 32, 96, 43);
    std::vector<float> x = RandomRows(6, w.k, 47);
    x[2 * w.k + 50] = std::numeric_limits<float>::quiet_NaN();
    Rows rows = ReferenceQuantize(x, 6, w.k);
    table().gemm.quantize(x.data(), w.k, 0, 6, rows.view());
    const Product product =
        IsIntegerCode(format.code) ? IntProduct(table(), w, rows) : FloatProduct(table(), w, x);
    const std::vector<float> out = Multiply(product, w.packed, 6, All(w.packed, 6));
    for (int32_t row = 0; row < 6; ++row) {
      for (int32_t n = 0; n < w.n; ++n) {
        EXPECT_EQ(std::isnan(out[row * Stride(w.packed) + n]), row == 2) << format.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, GemmTest, testing::ValuesIn(SupportedTables()),
                         [](const auto& table) { return std::string(table.param->isa); });

}  // namespace
}  // namespace lockstep::kernels
