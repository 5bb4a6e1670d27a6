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

}  // namespace lockstep::quant
