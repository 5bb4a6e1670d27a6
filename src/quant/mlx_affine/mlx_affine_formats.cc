// The kernels know groups of 32: wider ones repeat their constants. Codes of 4 bits and fewer are
// packed in halves of bytes. Those of 8 bits are made signed: code - 128, with bias + 128 * scale
// in f32 as the minimum.
#include <algorithm>
#include <array>

#include "quant/bytes.h"
#include "quant/format.h"
#include "quant/mlx_affine/mlx_affine.h"

namespace lockstep::quant {
namespace {

using kernels::WeightCode;

constexpr int32_t kUnit = 32;  // codes of a kernel's group; they end at a byte for any bits

struct Bf16 {
  static constexpr std::string_view kName = "BF16";
  static constexpr int32_t kBytes = 2;
  static float Read(const std::byte* at) { return LoadBf16(at); }
};
struct F16 {
  static constexpr std::string_view kName = "F16";
  static constexpr int32_t kBytes = 2;
  static float Read(const std::byte* at) { return LoadF16(at); }
};
struct F32 {
  static constexpr std::string_view kName = "F32";
  static constexpr int32_t kBytes = 4;
  static float Read(const std::byte* at) { return Load<float>(at); }
};

// "MLX_4_G64_BF16"; the rest stays zero.
constexpr std::array<char, 20> NameText(int32_t bits, int32_t group, std::string_view constants) {
  std::array<char, 20> text{};
  size_t size = 0;
  const auto add = [&](std::string_view part) {
    for (const char c : part) text[size++] = c;
  };
  const auto add_number = [&](int32_t number) {
    for (int32_t unit = 100; unit > 0; unit /= 10) {
      if (number >= unit) text[size++] = static_cast<char>('0' + number / unit % 10);
    }
  };
  add("MLX_");
  add_number(bits);
  add("_G");
  add_number(group);
  add("_");
  add(constants);
  return text;
}

bool IsF16(float value) { return F16ToF32(F32ToF16(value)) == value; }

template <int kBits, int kGroup, class Constant>
struct Affine {
  static constexpr int32_t kUnitBytes = kUnit * kBits / 8;
  static constexpr int32_t kUnits = kGroup / kUnit;
  static constexpr int32_t kShift = kBits == 8 ? 128 : 0;  // what makes the codes signed

  struct Constants {
    float scale;
    float bias;
  };
  static Constants Read(const BlockRow& row, int64_t block) {
    const int64_t at = block * Constant::kBytes;
    return {Constant::Read(row.plane[1] + at), Constant::Read(row.plane[2] + at)};
  }
  static float Minimum(const Constants& c) {
    return kShift == 0 ? c.bias : c.bias + static_cast<float>(kShift) * c.scale;
  }

  // codes[i] = code i of the unit at `data`, minus kShift. Every 8 codes are kBits whole bytes.
  template <class Code>
  static void Codes(const std::byte* data, Code* codes) {
    if constexpr (kBits == 8) {
      for (int32_t i = 0; i < kUnit; ++i) {
        codes[i] = static_cast<Code>(std::to_integer<int32_t>(data[i]) - kShift);
      }
      return;
    }
    for (int32_t i = 0; i < kUnit; i += 8, data += kBits) {
      uint64_t eight = 0;
      std::memcpy(&eight, data, kBits);
      for (int32_t j = 0; j < 8; ++j) {
        const auto code = static_cast<int32_t>(eight >> (j * kBits) & ((1 << kBits) - 1));
        codes[i + j] = static_cast<Code>(code - kShift);
      }
    }
  }

  static void Expand(const BlockRow& row, int64_t blocks, float* out) {
    for (int64_t block = 0; block < blocks; ++block) {
      const Constants c = Read(row, block);
      for (int32_t unit = 0; unit < kUnits; ++unit, out += kUnit) {
        int32_t codes[kUnit];
        Codes(row.plane[0] + (block * kUnits + unit) * kUnitBytes, codes);
        for (int32_t i = 0; i < kUnit; ++i) {
          out[i] = c.scale * static_cast<float>(codes[i] + kShift) + c.bias;
        }
      }
    }
  }

  static void Unpack(const BlockRow& row, int32_t unit, Group* out) {
    const Constants c = Read(row, unit / kUnits);
    out->scale = c.scale;
    out->minimum = Minimum(c);
    Codes(row.plane[0] + int64_t{unit} * kUnitBytes, out->codes);
  }

  static bool FitsF16(const BlockRow& row, int64_t blocks) {
    for (int64_t block = 0; block < blocks; ++block) {
      const Constants c = Read(row, block);
      if (!IsF16(c.scale) || !IsF16(Minimum(c))) return false;
    }
    return true;
  }

  static constexpr std::array<char, 20> kName = NameText(kBits, kGroup, Constant::kName);
  static constexpr Format kFormat = {kName.data(),
                                     kGroup,
                                     {kGroup * kBits / 8, Constant::kBytes, Constant::kBytes},
                                     Expand,
                                     {.code = kBits <= 4 ? WeightCode::kU4 : WeightCode::kI8,
                                      .group = kUnit,
                                      .has_min = true,
                                      .f32_scales = true},
                                     Unpack,
                                     FitsF16};
};

template <int kBits>
constexpr std::array<Format, 9> kOfBits = {
    Affine<kBits, 32, Bf16>::kFormat,  Affine<kBits, 64, Bf16>::kFormat,
    Affine<kBits, 128, Bf16>::kFormat, Affine<kBits, 32, F16>::kFormat,
    Affine<kBits, 64, F16>::kFormat,   Affine<kBits, 128, F16>::kFormat,
    Affine<kBits, 32, F32>::kFormat,   Affine<kBits, 64, F32>::kFormat,
    Affine<kBits, 128, F32>::kFormat};

constexpr std::array<Format, 54> Joined() {
  std::array<Format, 54> all;
  auto at = all.begin();
  for (const auto& some :
       {kOfBits<2>, kOfBits<3>, kOfBits<4>, kOfBits<5>, kOfBits<6>, kOfBits<8>}) {
    at = std::copy(some.begin(), some.end(), at);
  }
  return all;
}
constexpr std::array<Format, 54> kFormats = Joined();

}  // namespace

std::span<const Format> MlxAffineFormats() { return kFormats; }

std::string MlxAffineName(uint32_t bits, uint32_t group, std::string_view constants) {
  return "MLX_" + std::to_string(bits) + "_G" + std::to_string(group) + "_" +
         std::string(constants);
}

}  // namespace lockstep::quant
