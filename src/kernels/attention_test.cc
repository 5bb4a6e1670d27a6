// Attention against a naive double-precision reference, against a plain f32 spelling of the
// definition in attention.h (bit for bit), and against itself under every cut that must not matter.

#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/testing/attention_reference.h"

namespace lockstep::kernels {
namespace {

std::vector<int32_t> RandomCuts(int32_t begin, int32_t end, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ends;
  for (int32_t at = begin; at < end;) {
    const int32_t most = random() % 3 == 0 ? 40 : 5;
    at = std::min(end, at + 1 + static_cast<int32_t>(random() % most));
    ends.push_back(at);
  }
  return ends;
}

class EveryTable : public testing::TestWithParam<std::tuple<const KernelTable*, Shape>> {
 protected:
  const AttentionKernels& kernels() const { return std::get<0>(GetParam())->attention; }
  const Shape& shape() const { return std::get<1>(GetParam()); }
};

const Shape kShapes[] = {
    {64, 3, kBF16},
    {64, 3, kF32},
    {64, 3, kF16},
    {64, 3, kQ8},
    {64, 3, kQ4},
    {8, 1, kBF16},
    {24, 2, kF32},
    {24, 7, kBF16},
    {8, 50, kF32},
    {32, 1, kQ4},
    {64, 8, kQ8By64},
    {128, 2, kQ4By64},
    {24, 5, kF16},
    {64, 3, kBF16, {"window", 40}},
    {24, 7, kF32, {"window_kept", 33, 5}},
    {32, 2, kQ8, {"window_kept", 9, 260}},
    {24, 2, kBF16, {"window_of_one", 1, 3}},
    {64, 3, kBF16, {"soft_cap", 0, 0, 2.0f}},
    {24, 2, kF32, {"sinks", 0, 0, 0, true}},
    {32, 9, kQ4, {"all", 50, 20, 5.0f, true}},
    // Latent layers, one and several tiles of rows; not always whole vectors.
    {48, 4, kF32, {"latent"}, 32},
    {80, 7, kBF16, {"latent"}, 64},
    {24, 50, kF16, {"latent"}, 8},
    {56, 3, kBF16, {"latent_window", 40, 3}, 40},
    {96, 9, kQ8, {"latent"}, 64},
    {128, 4, kQ4By64, {"latent_sinks", 0, 0, 0, true}, 64},
    {64, 50, kQ4, {"latent"}, 32},
};

// Where a block, a lane group or a split begins or ends; every token in it is attended to.
struct Window {
  int32_t begin, end;
};
const Window kWindows[] = {{0, 49}, {250, 290}};

std::string Name(const testing::TestParamInfo<EveryTable::ParamType>& suite) {
  const auto& [table, shape] = suite.param;
  const std::string extras = shape.extras.name;
  return std::string(table->isa) + "_" + std::to_string(shape.head_dim) + "x" +
         std::to_string(shape.heads) + "_" + SchemeName(shape.scheme) +
         (extras.empty() ? "" : "_" + extras);
}

INSTANTIATE_TEST_SUITE_P(Isa, EveryTable,
                         testing::Combine(testing::ValuesIn(SupportedTables()),
                                          testing::ValuesIn(kShapes)),
                         Name);

TEST_P(EveryTable, FollowsTheDefinition) {
  const int64_t dim = shape().value_dim();
  for (const Window& window : kWindows) {
    Sequence s(shape(), window.end, 11);
    const std::vector<float> out = s.Run(kernels(), window.begin, {window.end});
    for (const int32_t p : {0, 1, 14, 15, 16, 31, 32, 48, 250, 254, 255, 256, 257, 287, 289}) {
      if (p < window.begin || p >= window.end) continue;
      for (int32_t head = 0; head < shape().heads; head += std::max(1, shape().heads / 3)) {
        const float* got = out.data() + ((p - window.begin) * shape().heads + head) * dim;
        const std::vector<double> exact = InDouble(s, p, head);
        double norm = 0;
        for (const double x : exact) norm = std::max(norm, std::fabs(x));
        for (int32_t d = 0; d < dim; ++d) {
          ASSERT_NEAR(got[d], exact[d], 1e-5 * std::max(norm, 1.0))
              << "position " << p << " head " << head;
        }
        ExpectSameBits({got, got + dim}, Definition(s, p, head));
      }
    }
  }
}

TEST_P(EveryTable, AnyCutGivesTheSameBits) {
  for (const auto& [begin, end] : kWindows) {
    const std::vector<float> whole = Sequence(shape(), end, 3).Run(kernels(), begin, {end});
    for (const uint32_t seed : {0u, 1u}) {
      Sequence s(shape(), end, 3, 1 + static_cast<int32_t>(seed) * 2);  // and other block ids
      ExpectSameBits(s.Run(kernels(), begin, RandomCuts(begin, end, seed)), whole);
    }
  }
}

TEST_P(EveryTable, WhatLiesBeyondAQueryIsNotRead) {
  const int64_t row = int64_t{shape().heads} * shape().value_dim();
  for (const int32_t poisoned : {1, 20, 255, 257}) {
    // All of the chunk is in the cache before its first query is attended to.
    const int32_t begin = std::max(0, poisoned - 12), end = poisoned + 5;
    Sequence s(shape(), end, 5), t(shape(), end, 5);
    const std::vector<float> clean = s.Run(kernels(), begin, {end});
    std::fill(t.values().begin() + int64_t{poisoned} * shape().head_dim, t.values().end(), kNan);
    const std::vector<float> out = t.Run(kernels(), begin, {end});
    const int64_t untouched = (poisoned - begin) * row;
    ExpectSameBits({out.begin(), out.begin() + untouched},
                   {clean.begin(), clean.begin() + untouched});
    // The inverse: from there on they see it.
    ASSERT_TRUE(std::isnan(out[untouched]));
    ASSERT_TRUE(std::isnan(out.back()));
  }
}

TEST_P(EveryTable, SplitsFoldToTheSameBits) {
  for (const int32_t length : {1, 16, 255, 256, 257, 520}) {
    Sequence s(shape(), length, 17);
    s.Append(kernels(), 0, length);
    const int64_t dim = shape().value_dim(), row = dim * shape().heads;
    std::vector<float> whole(length * row, kNan);
    s.Attend(kernels(), length - 1, length, &whole);

    const int32_t splits = (length - 1) / kSplit + 1;
    const int64_t stride = shape().heads * PartialFloats(shape().value_dim());
    std::vector<float> partial(splits * stride, kNan);
    for (int32_t i = splits - 1; i >= 0; --i) {
      kernels().attend_split(s.layer(), s.table(), s.Query(length - 1, length), i,
                             partial.data() + i * stride, s.scratch());
    }
    std::vector<float> folded(row);
    for (int32_t head = 0; head < shape().heads; ++head) {
      const float sink = s.sink(head);
      kernels().fold(partial.data() + head * PartialFloats(shape().value_dim()), stride, splits,
                     shape().extras.sinks ? &sink : nullptr, shape().value_dim(),
                     folded.data() + head * dim);
    }
    ExpectSameBits(folded, {whole.end() - row, whole.end()});
  }
}

void ExpectPassedPositionsAreNotRead(const KernelTable& table, const Shape& shape) {
  const Extras& extras = shape.extras;
  const int32_t begin = 600, end = 640;
  Sequence s(shape, end, 5), t(shape, end, 5);
  const std::vector<float> clean = s.Run(table.attention, begin, {end});
  for (int32_t p = extras.kept; p <= begin - extras.window; ++p) {
    std::fill_n(t.values().begin() + int64_t{p} * shape.head_dim, shape.head_dim, kNan);
  }
  ExpectSameBits(t.Run(table.attention, begin, {end}), clean);
  // And blocks of which nothing is seen need not be there.
  for (int32_t block = 0; block < end / kBlockTokens; ++block) {
    const int32_t first = block * kBlockTokens, last = first + kBlockTokens;
    if (first >= extras.kept && last <= begin - extras.window) s.table()[block] = 1 << 30;
  }
  std::vector<float> out(end * s.OutStride(), kNan);
  s.Attend(table.attention, begin, end, &out);
  ExpectSameBits({out.end() - static_cast<int64_t>(clean.size()), out.end()}, clean);
}

TEST(Windows, WhatTheyHavePassedIsNotRead) {
  for (const KernelTable* table : SupportedTables()) {
    for (const Shape& shape : kShapes) {
      if (shape.extras.window == 0) continue;
      SCOPED_TRACE(std::string(table->isa) + " " + shape.extras.name + " " +
                   SchemeName(shape.scheme));
      ExpectPassedPositionsAreNotRead(*table, shape);
    }
  }
}

TEST(HeadSizes, FollowTheDefinition) {
  for (int32_t dim = 32; dim <= 576; dim += dim < 128 ? 8 : 64) {
    for (const KvScheme& scheme : {kBF16, kF16, kQ8, kQ4}) {
      if (scheme.affine() && dim % scheme.group != 0) continue;
      const Shape shape{dim, 3, scheme};
      for (const KernelTable* table : SupportedTables()) {
        Sequence s(shape, 34, 31);
        const std::vector<float> out = s.Run(table->attention, 31, {34});
        for (int32_t head = 0; head < 3; ++head) {
          const auto row = out.begin() + (6 + head) * dim;
          SCOPED_TRACE(std::string(table->isa) + " " + SchemeName(scheme) + " " +
                       std::to_string(dim));
          ExpectSameBits({row, row + dim}, Definition(s, 33, head));
        }
      }
    }
  }
}

TEST(Scores, OfAnySizeGiveASoftmax) {
  // So large that the largest takes all; so small that all are equal; NaN and infinite ones.
  for (const KernelTable* table : SupportedTables()) {
    for (const float size : {1e-30f, 1.0f, 3e3f, 2e6f, 1e20f}) {
      Sequence s({32, 2, kF32}, 300, 3);
      for (float& x : s.queries()) x *= size;
      const std::vector<float> out = s.Run(table->attention, 299, {300});
      for (int32_t head = 0; head < 2; ++head) {
        std::vector<double> score(300);
        double top = -1e300, sum = 0;
        for (int32_t t = 0; t < 300; ++t) {
          for (int32_t d = 0; d < 32; ++d) {
            score[t] += double{s.QueryRow(299, head)[d]} * double{s.CachedKey(t)[d]};
          }
          score[t] /= std::sqrt(32.0);
          top = std::max(top, score[t]);
        }
        for (double& x : score) sum += x = std::exp(x - top);
        for (int32_t d = 0; d < 32; ++d) {
          double want = 0;
          for (int32_t t = 0; t < 300; ++t) want += score[t] / sum * double{s.CachedValue(t)[d]};
          // Scores have 24 bits.
          EXPECT_NEAR(out[head * 32 + d], want, std::min(1.0, 1e-5 + 1e-5 * double{size}))
              << table->isa << " " << size;
        }
      }
    }
    for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
      Sequence s({32, 2, kF32}, 300, 3);
      s.queries()[(299 * 2 + 1) * 32 + 5] = bad;
      const std::vector<float> out = s.Run(table->attention, 299, {300});
      for (int32_t d = 0; d < 32; ++d) EXPECT_TRUE(std::isnan(out[32 + d])) << table->isa;
      for (int32_t d = 0; d < 32; ++d) EXPECT_TRUE(std::isfinite(out[d])) << table->isa;
    }
  }
}

TEST(SoftCap, TanhIsExactToAFewUlp) {
  double worst = 0;
  for (int i = -200000; i <= 200000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    const double want = std::tanh(static_cast<double>(x));
    const float got = plain::Tanh(plain::Set1(x)).lane[0];
    worst = std::max(worst, std::fabs(got - want) / std::max(std::fabs(want), 1e-30));
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_TRUE(std::isnan(plain::Tanh(plain::Set1(kNan)).lane[3]));
  EXPECT_EQ(plain::Tanh(plain::Set1(std::numeric_limits<float>::infinity())).lane[0], 1.0f);
}

TEST(LargeHeads, TablesAgree) {
  // More rows than a batch holds; latent attention's sizes; vectors and a half.
  for (const Shape& shape : {Shape{576, 16, kBF16}, Shape{72, 9, kBF16}, Shape{128, 4, kBF16},
                             Shape{576, 16, kQ8}, Shape{128, 50, kQ4}, Shape{80, 12, kF16},
                             Shape{576, 16, kBF16, {}, 512}, Shape{576, 3, kQ8By64, {}, 512}}) {
    std::vector<float> first;
    for (const KernelTable* table : SupportedTables()) {
      Sequence s(shape, 40, 29);
      const std::vector<float> out = s.Run(table->attention, 24, {33, 40});
      if (first.empty()) first = out;
      ExpectSameBits(out, first);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
