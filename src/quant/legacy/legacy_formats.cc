// GGUF's formats of one scale for 32 elements (block_q4_0 and its kin in the GGUF documentation).
// In the 4- and 5-bit ones element i is in the low half of byte i, element i + 16 in the high half.
//
//   Q4_0   f16 d; 16 bytes                                   d * (q - 8)
//   Q4_1   f16 d, f16 m; 16 bytes                            d * q + m
//   Q5_0   f16 d; u32, bit i is bit 4 of element i; 16 bytes d * (q - 16)
//   Q5_1   f16 d, f16 m; u32; 16 bytes                       d * q + m
//   Q8_0   f16 d; 32 signed bytes                            d * q
#include "quant/bytes.h"
#include "quant/format.h"

namespace lockstep::quant {
namespace {

using kernels::WeightCode;

constexpr int32_t kBlock = 32;

// What differs among the five.
template <int kBits, bool kMinimum>
struct Layout {
  static constexpr int32_t kHigh = kMinimum ? 4 : 2;  // where the fifth bits stand
  static constexpr int32_t kCodes = kHigh + (kBits == 5 ? 4 : 0);
  static constexpr int32_t kBytes = kCodes + (kBits == 8 ? 32 : 16);
  static constexpr int32_t kZero = kMinimum || kBits == 8 ? 0 : 1 << (kBits - 1);

  // codes[i] = code i of a block, minus `shift`.
  static void Codes(const std::byte* block, int32_t shift, int8_t* codes) {
    if constexpr (kBits == 8) {
      std::memcpy(codes, block + kCodes, kBlock);
      return;
    }
    uint8_t bytes[16];
    std::memcpy(bytes, block + kCodes, 16);
    uint8_t fifth[kBlock] = {};
    if constexpr (kBits == 5) SpreadBits(block + kHigh, kBlock, fifth);
    for (int32_t i = 0; i < 16; ++i) {
      codes[i] = static_cast<int8_t>(((bytes[i] & 15) | fifth[i] << 4) - shift);
      codes[16 + i] = static_cast<int8_t>((bytes[i] >> 4 | fifth[16 + i] << 4) - shift);
    }
  }

  static void Expand(const BlockRow& row, int64_t blocks, float* out) {
    const std::byte* data = row.plane[0];
    for (int64_t b = 0; b < blocks; ++b, data += kBytes, out += kBlock) {
      const float scale = LoadF16(data);
      const float minimum = kMinimum ? LoadF16(data + 2) : 0.0f;
      int8_t codes[kBlock];
      Codes(data, kZero, codes);
      for (int32_t i = 0; i < kBlock; ++i) {
        const float value = scale * static_cast<float>(codes[i]);
        out[i] = kMinimum ? value + minimum : value;
      }
    }
  }

  // Four bits keep their zero point for the kernel; wider codes are made signed here.
  static constexpr int32_t kKernelZero = kBits == 4 ? kZero : 0;
  static void Unpack(const BlockRow& row, int32_t group, Group* out) {
    const std::byte* block = row.plane[0] + int64_t{group} * kBytes;
    out->scale = LoadF16(block);
    out->minimum = kMinimum ? LoadF16(block + 2) : 0.0f;
    Codes(block, kZero - kKernelZero, out->codes);
  }

  static constexpr Format Make(std::string_view name) {
    return {name,
            kBlock,
            {kBytes},
            Expand,
            {.code = kBits == 4 ? WeightCode::kU4 : WeightCode::kI8,
             .group = kBlock,
             .zero = kKernelZero,
             .has_min = kMinimum},
            Unpack};
  }
};

constexpr Format kFormats[] = {
    Layout<4, false>::Make("Q4_0"), Layout<4, true>::Make("Q4_1"),  Layout<5, false>::Make("Q5_0"),
    Layout<5, true>::Make("Q5_1"),  Layout<8, false>::Make("Q8_0"),
};

}  // namespace

std::span<const Format> LegacyFormats() { return kFormats; }

}  // namespace lockstep::quant
