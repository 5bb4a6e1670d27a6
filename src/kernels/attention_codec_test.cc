// The codecs of the cache: where attention.h puts every bit, how they round, and what they lose.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/half.h"
#include "kernels/attention.h"
#include "kernels/kernels.h"
#include "kernels/testing/attention_reference.h"

namespace lockstep::kernels {
namespace {

// Where attention.h puts an element of the keys or values of `position`: index of the sixteen or,
// in an affine group, of the code's byte and whether its high half holds it.
class Layout : public testing::TestWithParam<std::tuple<const KernelTable*, Shape>> {};

const Shape kShapes[] = {{64, 1, kBF16},      {24, 1, kBF16},   {24, 1, kF32},
                         {24, 1, kF16},       {32, 1, kQ8},     {96, 1, kQ4},
                         {128, 1, kQ8By64},   {64, 1, kQ4By64}, {80, 1, kBF16, {}, 64},
                         {96, 1, kQ8, {}, 64}};

std::string Name(const testing::TestParamInfo<Layout::ParamType>& suite) {
  const auto& [table, shape] = suite.param;
  return std::string(table->isa) + "_" + std::to_string(shape.head_dim) + "_" +
         SchemeName(shape.scheme) + (shape.latent_dim > 0 ? "_latent" : "");
}

INSTANTIATE_TEST_SUITE_P(Isa, Layout,
                         testing::Combine(testing::ValuesIn(SupportedTables()),
                                          testing::ValuesIn(kShapes)),
                         Name);

TEST_P(Layout, AppendWritesItsSlotAlone) {
  const auto& [table, shape] = GetParam();
  Sequence s(shape, 64, 23);
  const int32_t dim = shape.head_dim, position = 37, at = position % 16;
  const KvScheme& scheme = shape.scheme;
  const int64_t bytes = 2 * s.layer().block_stride;
  std::vector<std::byte> before(s.layer().data, s.layer().data + bytes);
  s.Append(table->attention, position, position + 1);
  const bool latent = shape.latent_dim > 0;
  const int64_t half = KvBlockBytes(1, dim, scheme) / 4;
  const int64_t block = s.table()[1] * s.layer().block_stride +
                        Sequence::kHead * KvBlockBytes(1, dim, scheme, latent);
  std::vector<bool> owned(bytes, false);
  const auto read = [&](int64_t offset, int64_t size) {
    uint32_t bits = 0;
    std::memcpy(&bits, s.layer().data + offset, size);
    for (int64_t i = 0; i < size; ++i) owned[offset + i] = true;
    return bits;
  };
  for (const bool value : {false, true}) {
    if (value && latent) break;
    const int64_t from = block + (value ? 2 * half : 0);  // position 37 is in the first half
    const float* want = value ? s.CachedValue(position) : s.CachedKey(position);
    for (int32_t d = 0; d < dim; ++d) {
      float got = 0;
      if (!scheme.affine()) {
        const int64_t size = scheme.codec == KvCodec::kF32 ? 4 : 2;
        // A sixteen of bf16 has lanes i and i + 8 beside each other.
        const auto paired = [&](int32_t lane) {
          return scheme.codec == KvCodec::kBF16 ? lane % 8 * 2 + lane / 8 : lane;
        };
        const int64_t in_row = d / 16 * 16 + (d / 16 * 16 + 16 <= dim ? paired(d % 16) : d % 16);
        const uint32_t bits =
            read(from + size * (value ? int64_t{at} * dim + in_row : d * 16 + paired(at)), size);
        got = scheme.codec == KvCodec::kF32    ? std::bit_cast<float>(bits)
              : scheme.codec == KvCodec::kBF16 ? BF16ToF32(static_cast<uint16_t>(bits))
                                               : F16ToF32(static_cast<uint16_t>(bits));
      } else {
        const int32_t group = scheme.group, in_group = d % group;
        const int64_t code_bits = scheme.codec == KvCodec::kQ8 ? 8 : 4;
        const int64_t base = from + d / group * (64 + 16 * group * code_bits / 8);
        const float scale = F16ToF32(static_cast<uint16_t>(read(base + 2 * at, 2)));
        const float bias = F16ToF32(static_cast<uint16_t>(read(base + 32 + 2 * at, 2)));
        const int64_t sixteen = value ? at * (group / 16) + in_group / 16 : in_group;
        const int64_t lane = value ? in_group % 16 : at;
        uint32_t code;
        if (code_bits == 8) {
          code = read(base + 64 + 16 * sixteen + lane, 1);
        } else {
          code = read(base + 64 + sixteen / 2 * 16 + lane, 1);
          code = sixteen % 2 == 0 ? code & 15u : code >> 4;
        }
        got = std::fma(static_cast<float>(code), scale, bias);
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want[d])) << "element " << d;
    }
  }
  for (int64_t i = 0; i < bytes; ++i) {
    if (owned[i]) continue;
    ASSERT_EQ(before[i], s.layer().data[i]) << "byte " << i;
  }
}

// Eight elements and what they come back as, in f32.
struct Rounding {
  KvScheme scheme;
  float in[8];
  uint32_t out[8];
};

TEST(Codec, HalvesRoundToEvenAndKeepNan) {
  const auto bits = [](uint32_t x) { return std::bit_cast<float>(x); };
  const float inf = std::numeric_limits<float>::infinity();
  const Rounding cases[] = {
      {kBF16,
       {0.0f, -0.0f, bits(0x3f808000u), bits(0x3f818000u), bits(0x3f818001u), bits(0x7f7fffffu),
        inf, bits(0x00018000u)},
       {0, 0x80000000u, 0x3f800000u, 0x3f820000u, 0x3f820000u, 0x7f800000u, 0x7f800000u,
        0x00020000u}},
      // Ties down and up to even, the greatest and what rounds to infinity, denormals.
      {kF16,
       {-0.0f, bits(0x3f801000u), bits(0x3f803000u), 65519.0f, 65520.0f, -inf, 0x1.8p-24f,
        0x1p-25f},
       {0x80000000u, 0x3f800000u, 0x3f804000u, 0x477fe000u, 0x7f800000u, 0xff800000u, 0x34000000u,
        0}},
  };
  for (const KernelTable* table : SupportedTables()) {
    for (const Rounding& c : cases) {
      // One position is seen, so its value comes out: of a head of eight, as it was kept.
      alignas(64) std::byte data[2 * kBlockTokens * 8 * 2] = {};
      const KvLayer layer{data, sizeof(data), 1, 8, c.scheme};
      const int32_t block = 0;
      const std::vector<float> zero(8, 0.0f);
      const auto attend = [&](const float* v) {
        std::vector<float> out(8);
        alignas(64) static std::byte scratch[1 << 18];
        EXPECT_LE(AttentionScratchBytes(8, 1), sizeof(scratch));
        table->attention.append(layer, &block, 0, 0, zero.data(), v);
        AttentionQuery query{zero.data(), 8, 1, 1, 0, 0, 1.0f};
        table->attention.attend(layer, &block, query, out.data(), 8, scratch);
        return out;
      };
      const std::vector<float> out = attend(c.in);
      for (int d = 0; d < 8; ++d) {
        // A chain starts from +0, which takes the sign from -0.
        const uint32_t want = c.out[d] == 0x80000000u ? 0 : c.out[d];
        EXPECT_EQ(std::bit_cast<uint32_t>(out[d]), want) << table->isa << " " << d;
      }
      const std::vector<float> nans(8, bits(0x7f800001u));
      for (const float x : attend(nans.data())) EXPECT_TRUE(std::isnan(x)) << table->isa;
    }
  }
}

TEST(Codec, AffineComesBackWithinHalfAScale) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (const KvScheme& scheme : {kQ8, kQ4, kQ8By64, kQ4By64}) {
    for (const float offset : {0.0f, 3.0f, -300.0f}) {
      for (const float spread : {1.0f, 1e-3f, 50.0f}) {
        std::vector<float> x(64);
        for (float& v : x) v = offset + spread * normal(random);
        const std::vector<float> y = Recoded(x.data(), 64, scheme);
        for (int32_t begin = 0; begin < 64; begin += scheme.group) {
          const auto [low, high] =
              std::minmax_element(x.begin() + begin, x.begin() + begin + scheme.group);
          // f16's steps widen the range at both ends.
          const float levels = scheme.codec == KvCodec::kQ8 ? 255.0f : 15.0f;
          const float range = *high - *low + std::fabs(*low) * 0x1p-10f;
          const float scale = range / levels * (1 + 0x1p-10f) + 0x1p-24f;
          for (int32_t d = begin; d < begin + scheme.group; ++d) {
            ASSERT_LE(std::fabs(x[d] - y[d]), 0.5001f * scale + std::fabs(x[d]) * 0x1p-22f);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
