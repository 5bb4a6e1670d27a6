// The words of gemm_words.md on plain C++.
//
// A fragment: included after vec-inl.h.

constexpr int kIntRows = 1;
constexpr int kFewIntRows = 4;
constexpr int kResidentIntRows = 1;
constexpr int kFloatRows = 4;
constexpr int kFloatPanels = 1;
constexpr int kFewFloatRows = 1;
constexpr int kFloatChains = 1;

struct I {
  int32_t lane[16];
};

LOCKSTEP_VEC V LoadF16(const uint16_t* p) {
  V out;
  for (int i = 0; i < 16; ++i) out.lane[i] = F16ToF32(p[i]);
  return out;
}
LOCKSTEP_VEC V ToF32(I v) {
  V out;
  for (int i = 0; i < 16; ++i) out.lane[i] = static_cast<float>(v.lane[i]);
  return out;
}
LOCKSTEP_VEC I SetI(int32_t x) {
  I out;
  for (int32_t& y : out.lane) y = x;
  return out;
}
LOCKSTEP_VEC I Sub(I a, I b) {
  I out;
  for (int i = 0; i < 16; ++i) out.lane[i] = a.lane[i] - b.lane[i];
  return out;
}

LOCKSTEP_VEC uint32_t LargestMagnitude(const float* x) {
  uint32_t largest = 0;
  for (int i = 0; i < kActGroup; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  }
  return largest;
}
LOCKSTEP_VEC int32_t Encode(const float* x, float inverse, int8_t* codes) {
  int32_t sum = 0;
  for (int i = 0; i < kActGroup; ++i) {
    const long code = std::lrint(x[i] * inverse);  // the rounding mode is to even
    codes[i] = static_cast<int8_t>(code);
    sum += static_cast<int32_t>(code);
  }
  return sum;
}
