// Reading the little-endian fields of weight blocks, which stand at any byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace lockstep::quant {

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

inline float LoadF16(const std::byte* at) { return F16ToF32(Load<uint16_t>(at)); }
inline float LoadBf16(const std::byte* at) { return BF16ToF32(Load<uint16_t>(at)); }

// out[i] = bit i of the little-endian bits at `at`; n is a multiple of 8.
inline void SpreadBits(const std::byte* at, int32_t n, uint8_t* out) {
  for (int32_t i = 0; i < n; i += 8) {
    // Byte j of the product keeps bit j; adding 127 carries any bit to the top.
    const uint64_t each = (Load<uint8_t>(at + i / 8) * 0x0101010101010101u) & 0x8040201008040201u;
    const uint64_t bits = (each + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
    std::memcpy(out + i, &bits, 8);
  }
}

}  // namespace lockstep::quant
