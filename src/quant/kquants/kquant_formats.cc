// GGUF's formats of 256 elements with quantised scales (block_q4_K and its kin in the GGUF
// documentation).
//
//   Q4_K   f16 d, f16 dmin; 12 bytes of eight 6-bit scales s and minimums m; 128 bytes: of each 64
//          elements the first 32 in the low halves, the next 32 in the high. Groups of 32.
//              (d * s) * q - (dmin * m)
//   Q5_K   the same, and 32 bytes before the codes: bit g of byte i is bit 4 of element i, group g
//   Q6_K   128 bytes of low halves, 64 of upper pairs of bits, 16 signed scales s, f16 d.
//          Groups of 16.
//              (d * s) * (q - 32)
#include "quant/bytes.h"
#include "quant/format.h"

namespace lockstep::quant {
namespace {

using kernels::WeightCode;

constexpr int32_t kBlock = 256;

// The 6-bit scale and minimum of group g out of the 12 bytes that Q4_K and Q5_K keep them in.
struct ScaleMin {
  int32_t scale;
  int32_t minimum;
};
ScaleMin LoadScaleMin(const std::byte* packed, int32_t g) {
  const auto byte = [&](int32_t i) { return static_cast<int32_t>(Load<uint8_t>(packed + i)); };
  if (g < 4) return {byte(g) & 63, byte(g + 4) & 63};
  return {(byte(g + 4) & 15) | (byte(g - 4) >> 6 << 4), (byte(g + 4) >> 4) | (byte(g) >> 6 << 4)};
}

template <int kBits>
struct SuperBlock {
  static constexpr int32_t kScales = 4;
  static constexpr int32_t kHigh = kScales + 12;
  static constexpr int32_t kCodes = kHigh + (kBits == 5 ? 32 : 0);
  static constexpr int32_t kBytes = kCodes + 128;
  static constexpr int32_t kGroups = 8;

  static void Unpack(const BlockRow& row, int32_t group, Group* out) {
    const std::byte* block = row.plane[0] + int64_t{group / kGroups} * kBytes;
    const int32_t g = group % kGroups;
    const ScaleMin packed = LoadScaleMin(block + kScales, g);
    out->scale = LoadF16(block) * static_cast<float>(packed.scale);
    out->minimum = -(LoadF16(block + 2) * static_cast<float>(packed.minimum));
    uint8_t bytes[32];
    uint8_t high[32] = {};
    std::memcpy(bytes, block + kCodes + g / 2 * 32, 32);
    if constexpr (kBits == 5) std::memcpy(high, block + kHigh, 32);
    for (int32_t i = 0; i < 32; ++i) {
      const int32_t low = bytes[i] >> (g % 2 * 4) & 15;
      out->codes[i] = static_cast<int8_t>(kBits == 5 ? low | (high[i] >> g & 1) << 4 : low);
    }
  }

  static void Expand(const BlockRow& row, int64_t blocks, float* out) {
    for (int64_t b = 0; b < blocks; ++b) {
      const BlockRow block{{row.plane[0] + b * kBytes}};
      for (int32_t g = 0; g < kGroups; ++g) {
        Group group;
        Unpack(block, g, &group);
        for (int32_t i = 0; i < 32; ++i) *out++ = group.scale * group.codes[i] + group.minimum;
      }
    }
  }

  static constexpr Format Make(std::string_view name) {
    return {name,
            kBlock,
            {kBytes},
            Expand,
            {.code = kBits == 4 ? WeightCode::kU4 : WeightCode::kI8,
             .group = 32,
             .has_min = true,
             .f32_scales = true},
            Unpack};
  }
};

struct Q6K {
  static constexpr int32_t kHigh = 128;
  static constexpr int32_t kScales = kHigh + 64;
  static constexpr int32_t kScale = kScales + 16;
  static constexpr int32_t kBytes = kScale + 2;
  static constexpr int32_t kGroups = 16;

  static void Unpack(const BlockRow& row, int32_t group, Group* out) {
    const std::byte* block = row.plane[0] + int64_t{group / kGroups} * kBytes;
    const int32_t g = group % kGroups;
    out->scale = LoadF16(block + kScale) * static_cast<float>(Load<int8_t>(block + kScales + g));
    out->minimum = 0.0f;
    // Of each 128 elements, quarter q takes its low half from bytes (q % 2) * 32 + l, in the low
    // half of the byte for the first two quarters, and its upper bits from pair q of byte l.
    const int32_t half = g / 8;
    const int32_t quarter = g % 8 / 2;
    const int32_t first = g % 2 * 16;
    uint8_t bytes[16];
    uint8_t high[16];
    std::memcpy(bytes, block + half * 64 + quarter % 2 * 32 + first, 16);
    std::memcpy(high, block + kHigh + half * 32 + first, 16);
    for (int32_t i = 0; i < 16; ++i) {
      const int32_t low = bytes[i] >> (quarter / 2 * 4) & 15;
      out->codes[i] = static_cast<int8_t>((low | (high[i] >> (2 * quarter) & 3) << 4) - 32);
    }
  }

  static void Expand(const BlockRow& row, int64_t blocks, float* out) {
    for (int64_t b = 0; b < blocks; ++b) {
      const BlockRow block{{row.plane[0] + b * kBytes}};
      for (int32_t g = 0; g < kGroups; ++g) {
        Group group;
        Unpack(block, g, &group);
        for (int32_t i = 0; i < 16; ++i) *out++ = group.scale * group.codes[i];
      }
    }
  }
};

constexpr Format kFormats[] = {
    SuperBlock<4>::Make("Q4_K"),
    SuperBlock<5>::Make("Q5_K"),
    {"Q6_K",
     kBlock,
     {Q6K::kBytes},
     Q6K::Expand,
     {.code = WeightCode::kI8, .group = 16, .f32_scales = true},
     Q6K::Unpack},
};

}  // namespace

std::span<const Format> KQuantFormats() { return kFormats; }

}  // namespace lockstep::quant
