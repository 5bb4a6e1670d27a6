// Attention against a naive double-precision reference, against a plain f32 spelling of the
// definition in attention.h (bit for bit), and against itself under every cut that must not matter.

#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/generic/inline.h"
#include "kernels/kernels.h"

namespace lockstep::kernels {
namespace {

// For Exp2 and the sum's tree, which the definition names without spelling them.
namespace plain {
#include "kernels/isa/scalar/vec-inl.h"

#include "kernels/generic/math-inl.h"
}  // namespace plain

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  int32_t head_dim;
  int32_t heads;
  KvCodec codec;
};

float RoundToCodec(float x, KvCodec codec) {
  if (codec == KvCodec::kF32 || std::isnan(x)) return x;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t tail = bits & 0xffffu;
  uint32_t high = bits >> 16;
  if (tail > 0x8000u || (tail == 0x8000u && (high & 1u) != 0)) ++high;
  return std::bit_cast<float>(high << 16);
}

// A sequence: its queries, keys and values, and a cache of two KV heads whose second holds them.
// All of the cache that append() has not written is NaN.
class Sequence {
 public:
  static constexpr int32_t kHeads = 2, kHead = 1;

  Sequence(const Shape& shape, int32_t length, uint32_t seed, int32_t spread = 1)
      : shape_(shape), length_(length) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    const auto fill = [&](std::vector<float>* x, int64_t n) {
      x->resize(n);
      for (float& v : *x) v = normal(random);
    };
    fill(&q_, int64_t{length} * shape.heads * shape.head_dim);
    fill(&k_, int64_t{length} * shape.head_dim);
    fill(&v_, int64_t{length} * shape.head_dim);
    for (float& x : q_) x *= 2.0f;

    const int32_t blocks = (length + kBlockTokens - 1) / kBlockTokens;
    // Just as many entries as there are blocks, and the last block ends the memory: what lies
    // beyond is for the address sanitiser.
    table_.resize(blocks);
    for (int32_t b = 0; b < blocks; ++b) table_[b] = (blocks - 1 - b) * spread % (blocks * spread);
    const int64_t bytes = KvBlockBytes(kHeads, shape.head_dim, shape.codec);
    const int64_t total = ((blocks - 1) * spread + 1) * bytes;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (total + 63) / 64 * 64)));
    std::memset(data_.get(), 0xff, total);
    layer_ = {data_.get(), bytes, kHeads, shape.head_dim, shape.codec};
    scratch_.reset(static_cast<std::byte*>(
        std::aligned_alloc(64, AttentionScratchBytes(shape.head_dim, shape.heads))));
  }

  void Append(const AttentionKernels& kernels, int32_t begin, int32_t end) {
    for (int32_t p = begin; p < end; ++p) {
      kernels.append(layer_, table_.data(), p, kHead, Key(p), Value(p));
    }
  }

  AttentionQuery Query(int32_t begin, int32_t end) const {
    const int64_t stride = int64_t{shape_.heads} * shape_.head_dim;
    const float scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
    return {q_.data() + begin * stride, stride, end - begin, shape_.heads, begin, kHead, scale};
  }

  void Attend(const AttentionKernels& kernels, int32_t begin, int32_t end,
              std::vector<float>* out) const {
    const int64_t stride = int64_t{shape_.heads} * shape_.head_dim;
    kernels.attend(layer_, table_.data(), Query(begin, end), out->data() + begin * stride, stride,
                   scratch_.get());
  }

  // Appends [0, begin), then appends and attends chunk by chunk; the outputs from `begin` on, as
  // [token][head][head_dim].
  std::vector<float> Run(const AttentionKernels& kernels, int32_t begin,
                         const std::vector<int32_t>& ends) {
    std::vector<float> out(q_.size(), kNan);
    Append(kernels, 0, begin);
    const int64_t skipped = int64_t{begin} * shape_.heads * shape_.head_dim;
    for (const int32_t end : ends) {
      Append(kernels, begin, end);
      Attend(kernels, begin, end, &out);
      begin = end;
    }
    const int64_t written = int64_t{begin} * shape_.heads * shape_.head_dim;
    return {out.begin() + skipped, out.begin() + written};
  }

  const float* Key(int32_t p) const { return k_.data() + int64_t{p} * shape_.head_dim; }
  const float* Value(int32_t p) const { return v_.data() + int64_t{p} * shape_.head_dim; }
  const float* QueryRow(int32_t p, int32_t head) const {
    return q_.data() + (int64_t{p} * shape_.heads + head) * shape_.head_dim;
  }
  const Shape& shape() const { return shape_; }
  const KvLayer& layer() const { return layer_; }
  const int32_t* table() const { return table_.data(); }
  std::vector<float>& values() { return v_; }
  void* scratch() { return scratch_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  Shape shape_;
  int32_t length_;
  std::vector<float> q_, k_, v_;
  std::vector<int32_t> table_;
  std::unique_ptr<std::byte, Free> data_, scratch_;
  KvLayer layer_;
};

// The definition in attention.h, one operation after the other.
std::vector<float> Definition(const Sequence& s, int32_t position, int32_t head) {
  const int32_t dim = s.shape().head_dim;
  const KvCodec codec = s.shape().codec;
  const float factor = (1.0f / std::sqrt(static_cast<float>(dim))) * 0x1.715476p+0f;
  const auto exp2 = [](float x) { return plain::Exp2(plain::Set1(x)).lane[0]; };
  float m = 0, l = 0;
  std::vector<float> o(dim);
  for (int32_t begin = 0; begin <= position; begin += kSplit) {
    const int32_t n = std::min(kSplit, position + 1 - begin);
    std::vector<float> p(n), next(dim, 0.0f);
    float top = -std::numeric_limits<float>::infinity();
    for (int32_t t = 0; t < n; ++t) {
      float sum = 0.0f;
      for (int32_t d = 0; d < dim; ++d) {
        sum = std::fma(s.QueryRow(position, head)[d] * factor,
                       RoundToCodec(s.Key(begin + t)[d], codec), sum);
      }
      p[t] = sum;
      top = std::max(top, sum);
    }
    plain::V lanes = plain::Zero();
    for (int32_t t = 0; t < n; ++t) {
      p[t] = exp2(p[t] - top);
      lanes.lane[t % 16] += p[t];
    }
    const float next_l = plain::ReduceAdd(lanes);
    for (int32_t t = 0; t < n; ++t) {
      for (int32_t d = 0; d < dim; ++d) {
        next[d] = std::fma(p[t], RoundToCodec(s.Value(begin + t)[d], codec), next[d]);
      }
    }
    if (begin == 0) {
      m = top;
      l = next_l;
      o = next;
      continue;
    }
    const float both = std::max(m, top), a = exp2(m - both), b = exp2(top - both);
    m = both;
    l = std::fma(l, a, next_l * b);
    for (int32_t d = 0; d < dim; ++d) o[d] = std::fma(o[d], a, next[d] * b);
  }
  const float inverse = 1.0f / l;
  for (float& x : o) x *= inverse;
  return o;
}

std::vector<double> InDouble(const Sequence& s, int32_t position, int32_t head) {
  const int32_t dim = s.shape().head_dim;
  const KvCodec codec = s.shape().codec;
  std::vector<double> score(position + 1), out(dim, 0.0);
  double top = -1e300, sum = 0;
  for (int32_t t = 0; t <= position; ++t) {
    double dot = 0;
    for (int32_t d = 0; d < dim; ++d) {
      dot += static_cast<double>(s.QueryRow(position, head)[d]) *
             static_cast<double>(RoundToCodec(s.Key(t)[d], codec));
    }
    score[t] = dot / std::sqrt(static_cast<double>(dim));
    top = std::max(top, score[t]);
  }
  for (double& x : score) sum += x = std::exp(x - top);
  for (int32_t t = 0; t <= position; ++t) {
    for (int32_t d = 0; d < dim; ++d) {
      out[d] += score[t] / sum * static_cast<double>(RoundToCodec(s.Value(t)[d], codec));
    }
  }
  return out;
}

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i])) << "element " << i;
  }
}

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
    {64, 3, KvCodec::kBF16}, {64, 3, KvCodec::kF32},  {8, 1, KvCodec::kBF16},
    {24, 2, KvCodec::kF32},  {24, 7, KvCodec::kBF16}, {8, 50, KvCodec::kF32},
};

// Where a block, a lane group or a split begins or ends; every token in it is attended to.
struct Window {
  int32_t begin, end;
};
const Window kWindows[] = {{0, 49}, {250, 290}};

std::string Name(const testing::TestParamInfo<EveryTable::ParamType>& suite) {
  const auto& [table, shape] = suite.param;
  return std::string(table->isa) + "_" + std::to_string(shape.head_dim) + "x" +
         std::to_string(shape.heads) + (shape.codec == KvCodec::kF32 ? "_f32" : "_bf16");
}

INSTANTIATE_TEST_SUITE_P(Isa, EveryTable,
                         testing::Combine(testing::ValuesIn(SupportedTables()),
                                          testing::ValuesIn(kShapes)),
                         Name);

TEST_P(EveryTable, FollowsTheDefinition) {
  const int64_t dim = shape().head_dim;
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
          ASSERT_NEAR(got[d], exact[d], 1e-5 * norm) << "position " << p << " head " << head;
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
  const int64_t row = int64_t{shape().heads} * shape().head_dim;
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
    const int64_t dim = shape().head_dim, row = dim * shape().heads;
    std::vector<float> whole(length * row, kNan);
    s.Attend(kernels(), length - 1, length, &whole);

    const int32_t splits = (length - 1) / kSplit + 1;
    const int64_t stride = shape().heads * PartialFloats(shape().head_dim);
    std::vector<float> partial(splits * stride, kNan);
    for (int32_t i = splits - 1; i >= 0; --i) {
      kernels().attend_split(s.layer(), s.table(), s.Query(length - 1, length), i,
                             partial.data() + i * stride, s.scratch());
    }
    std::vector<float> folded(row);
    for (int32_t head = 0; head < shape().heads; ++head) {
      kernels().fold(partial.data() + head * PartialFloats(shape().head_dim), stride, splits,
                     shape().head_dim, folded.data() + head * dim);
    }
    ExpectSameBits(folded, {whole.end() - row, whole.end()});
  }
}

TEST_P(EveryTable, AppendWritesItsSlotAlone) {
  Sequence s(shape(), 64, 23);
  const int64_t bytes = 2 * s.layer().block_stride;
  std::vector<std::byte> before(s.layer().data, s.layer().data + bytes);
  s.Append(kernels(), 37, 38);
  const int64_t element = shape().codec == KvCodec::kF32 ? 4 : 2;
  int64_t changed = 0;
  for (int64_t i = 0; i < bytes; i += element) {
    changed += std::memcmp(before.data() + i, s.layer().data + i, element) != 0;
  }
  EXPECT_EQ(changed, 2 * shape().head_dim);
  // Where attention.h puts them.
  const std::byte* block = s.layer().data + s.table()[1] * s.layer().block_stride +
                           2 * Sequence::kHead * kBlockTokens * shape().head_dim * element;
  for (int32_t d = 0; d < shape().head_dim; ++d) {
    const auto read = [&](int64_t index) {
      uint32_t bits = 0;
      std::memcpy(&bits, block + index * element, element);
      return std::bit_cast<float>(element == 4 ? bits : bits << 16);
    };
    EXPECT_EQ(read(int64_t{d} * 16 + 5), RoundToCodec(s.Key(37)[d], shape().codec));
    EXPECT_EQ(read((int64_t{kBlockTokens} + 5) * shape().head_dim + d),
              RoundToCodec(s.Value(37)[d], shape().codec));
  }
}

TEST(Codec, Bf16RoundsHalfToEvenAndKeepsNan) {
  const float cases[] = {0.0f,
                         -0.0f,
                         std::bit_cast<float>(0x3f808000u),  // a tie, down to even
                         std::bit_cast<float>(0x3f818000u),  // a tie, up to even
                         std::bit_cast<float>(0x3f818001u),
                         std::bit_cast<float>(0x7f7fffffu),  // rounds to infinity
                         std::numeric_limits<float>::infinity(),
                         std::bit_cast<float>(0x00018000u)};
  const uint16_t want[] = {0x0000, 0x8000, 0x3f80, 0x3f82, 0x3f82, 0x7f80, 0x7f80, 0x0002};
  for (const KernelTable* table : SupportedTables()) {
    alignas(64) uint16_t data[2 * kBlockTokens * 8] = {};
    const KvLayer layer{reinterpret_cast<std::byte*>(data), sizeof(data), 1, 8, KvCodec::kBF16};
    const int32_t block = 0;
    table->attention.append(layer, &block, 0, 0, cases, cases);
    for (int d = 0; d < 8; ++d) {
      EXPECT_EQ(data[16 * d], want[d]) << table->isa << " " << d;
      EXPECT_EQ(data[kBlockTokens * 8 + d], want[d]) << table->isa << " " << d;
    }
    const std::vector<float> nans(8, std::bit_cast<float>(0x7f800001u));
    table->attention.append(layer, &block, 0, 0, nans.data(), nans.data());
    for (int d = 0; d < 8; ++d) EXPECT_EQ(data[16 * d], 0x7fc0) << table->isa;
  }
}

TEST(LargeHeads, TablesAgree) {
  // More rows than a batch holds; latent attention's head size; vectors and a half.
  for (const Shape& shape : {Shape{576, 16, KvCodec::kBF16}, Shape{72, 9, KvCodec::kBF16},
                             Shape{128, 4, KvCodec::kBF16}}) {
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
