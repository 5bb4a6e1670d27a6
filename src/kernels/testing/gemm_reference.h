// The definitions of gemm.h written down naively, and random matrices in every packed format; for
// the tests of the products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/half.h"
#include "kernels/generic/gemm_layout.h"
#include "kernels/kernels.h"

namespace lockstep::kernels {

struct Format {
  const char* name;
  WeightCode code;
  int32_t group;
  int32_t zero;
  bool has_min;
  bool f32_scales;
  int32_t lowest, highest;  // codes
};

inline constexpr Format kIntFormats[] = {
    {"u4 zero 8", WeightCode::kU4, 32, 8, false, false, 0, 15},
    {"u4 min", WeightCode::kU4, 32, 0, true, false, 0, 15},
    {"u4 min f32", WeightCode::kU4, 32, 0, true, true, 0, 15},
    {"u4 plain", WeightCode::kU4, 32, 0, false, true, 0, 15},
    {"i8", WeightCode::kI8, 32, 0, false, false, -128, 127},
    {"i8 min", WeightCode::kI8, 32, 0, true, false, 0, 31},
    {"i8 min f32", WeightCode::kI8, 32, 0, true, true, -128, 127},
    {"i8 group 16 f32", WeightCode::kI8, 16, 0, false, true, -32, 31},
    {"i8 group 16 min", WeightCode::kI8, 16, 0, true, false, -128, 127},
};
inline constexpr Format kFloatFormats[] = {
    {"f32", WeightCode::kF32, 0, 0, false, false, 0, 0},
    {"bf16", WeightCode::kBF16, 0, 0, false, false, 0, 0},
    {"f16", WeightCode::kF16, 0, 0, false, false, 0, 0},
};

// Aligned, zeroed bytes.
class Bytes {
 public:
  explicit Bytes(size_t size) : storage_(size / 64 + 1) {}
  std::byte* data() { return storage_.data()->bytes; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> storage_;
};

inline float RoundedToHalf(float value) { return F16ToF32(F32ToF16(value)); }

inline float Random(std::mt19937& random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}

struct Weights {
  Format format;
  int32_t n, k;
  std::vector<int32_t> codes;       // [n, k]
  std::vector<float> scales, mins;  // [n, k / group]
  std::vector<float> values;        // [n, k], float formats
  Bytes bytes{0};
  PackedMatrix packed;

  Weights(const Format& f, int32_t rows, int32_t depth, uint32_t seed, bool extreme = false)
      : format(f), n(rows), k(depth) {
    std::mt19937 random(seed);
    const size_t count = static_cast<size_t>(n) * k;
    packed = {.code = f.code,
              .n = n,
              .k = k,
              .group = f.group,
              .zero = f.zero,
              .has_min = f.has_min,
              .f32_scales = f.f32_scales};
    packed.panel_bytes = PanelBytes(packed);
    bytes = Bytes(packed.panel_bytes * packed.panels());
    packed.data = bytes.data();
    if (!IsIntegerCode(f.code)) {
      for (size_t i = 0; i < count; ++i) {
        const float x = Random(random, -1.0f, 1.0f);
        values.push_back(f.code == WeightCode::kF32   ? x
                         : f.code == WeightCode::kF16 ? RoundedToHalf(x)
                                                      : BF16ToF32(F32ToBF16(x)));
      }
      PackFloat();
      return;
    }
    std::uniform_int_distribution<int32_t> code(f.lowest, f.highest);
    for (size_t i = 0; i < count; ++i) {
      codes.push_back(extreme ? (i / k % 2 == 0 ? f.lowest : f.highest) : code(random));
    }
    for (size_t i = 0; i < count / f.group; ++i) {
      const float scale = Random(random, -0.1f, 0.1f);
      const float min = Random(random, -1.0f, 1.0f);
      scales.push_back(f.f32_scales ? scale : RoundedToHalf(scale));
      mins.push_back(f.f32_scales ? min : RoundedToHalf(min));
    }
    PackInt();
  }

 private:
  void PackFloat() {
    for (int32_t row = 0; row < n; ++row) {
      std::byte* panel = bytes.data() + row / 16 * packed.panel_bytes;
      for (int32_t i = 0; i < k; ++i) {
        const float x = values[static_cast<size_t>(row) * k + i];
        const size_t at = static_cast<size_t>(i) * 16 + row % 16;
        const uint16_t half = format.code == WeightCode::kF16 ? F32ToF16(x) : F32ToBF16(x);
        if (format.code == WeightCode::kF32) {
          std::memcpy(panel + at * 4, &x, 4);
        } else {
          std::memcpy(panel + at * 2, &half, 2);
        }
      }
    }
  }

  void PackInt() {
    const int32_t g = format.group;
    for (int32_t row = 0; row < n; ++row) {
      const int32_t j = row % 16;
      for (int32_t group = 0; group < k / g; ++group) {
        std::byte* to = bytes.data() + row / 16 * packed.panel_bytes + group * GroupBytes(packed);
        for (int32_t i = 0; i < g; ++i) {
          const auto code =
              static_cast<uint8_t>(codes[static_cast<size_t>(row) * k + group * g + i]);
          if (format.code == WeightCode::kU4) {
            to[i % 16 / 4 * 64 + j * 4 + i % 4] |= std::byte(i < 16 ? code : code << 4);
          } else {
            to[i / 4 * 64 + j * 4 + i % 4] = std::byte{code};
          }
        }
        to += format.code == WeightCode::kU4 ? 256 : 16 * g;
        for (const auto* constants : {&scales, &mins}) {
          const float x = (*constants)[static_cast<size_t>(row) * (k / g) + group];
          const uint16_t half = F32ToF16(x);
          if (constants == &mins && !format.has_min) continue;
          if (format.f32_scales) {
            std::memcpy(to + j * 4, &x, 4);
          } else {
            std::memcpy(to + j * 2, &half, 2);
          }
          to += format.f32_scales ? 64 : 32;
        }
      }
    }
  }
};

struct Rows {
  int32_t count, k;
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int32_t> sums;

  Rows(int32_t rows, int32_t depth)
      : count(rows),
        k(depth),
        codes(static_cast<size_t>(rows) * depth),
        scales(codes.size() / kActGroup),
        sums(codes.size() / 16) {}
  QuantizedRows view() { return {codes.data(), scales.data(), sums.data(), k}; }
};

inline std::vector<float> RandomRows(int32_t rows, int32_t k, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<size_t>(rows) * k);
  for (float& value : x) value = Random(random, -3.0f, 3.0f);
  return x;
}

// The definition of the activations' codes.
inline Rows ReferenceQuantize(const std::vector<float>& x, int32_t rows, int32_t k) {
  Rows out(rows, k);
  for (size_t g = 0; g < x.size() / 16; ++g) {
    float largest = 0.0f;
    bool finite = true;
    for (size_t i = g * 16; i < g * 16 + 16; ++i) {
      finite = finite && std::isfinite(x[i]);
      largest = std::max(largest, std::fabs(x[i]));
    }
    out.scales[g] = !finite               ? std::numeric_limits<float>::quiet_NaN()
                    : largest < 0x1p-119f ? 0.0f
                                          : largest / 127.0f;
    if (!finite || largest < 0x1p-119f) continue;
    const float inverse = 127.0f / largest;
    for (size_t i = g * 16; i < g * 16 + 16; ++i) {
      out.codes[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
      out.sums[i / 16] += out.codes[i];
    }
  }
  return out;
}

// The definition of gemm_int for one output.
inline float ReferenceInt(const Weights& w, const Rows& x, int32_t row, int32_t n) {
  const int32_t g = w.format.group;
  float acc = 0.0f;
  for (int32_t group = 0; group < w.k / g; ++group) {
    const size_t at = static_cast<size_t>(n) * (w.k / g) + group;
    float m = 0.0f;
    for (int32_t h = group * g / 16; h < (group + 1) * g / 16; ++h) {
      int32_t dot = 0, sum = 0;
      for (int32_t i = h * 16; i < h * 16 + 16; ++i) {
        const int32_t code = x.codes[static_cast<size_t>(row) * w.k + i];
        dot += w.codes[static_cast<size_t>(n) * w.k + i] * code;
        sum += code;
      }
      const float act_scale = x.scales[static_cast<size_t>(row) * (w.k / 16) + h];
      acc = std::fma(static_cast<float>(dot - w.format.zero * sum), w.scales[at] * act_scale, acc);
      m += act_scale * static_cast<float>(sum);
    }
    if (w.format.has_min) acc = std::fma(w.mins[at], m, acc);
  }
  return acc;
}

inline float ReferenceFloat(const Weights& w, const std::vector<float>& x, int32_t row, int32_t n) {
  float acc = 0.0f;
  for (int32_t i = 0; i < w.k; ++i) {
    acc = std::fma(x[static_cast<size_t>(row) * w.k + i],
                   w.values[static_cast<size_t>(n) * w.k + i], acc);
  }
  return acc;
}

}  // namespace lockstep::kernels
