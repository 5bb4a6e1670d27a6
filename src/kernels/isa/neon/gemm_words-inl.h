// The words of gemm_words.md on Advanced SIMD.
//
// A fragment: included after vec-inl.h.

constexpr int kIntRows = 4;
constexpr int kFewIntRows = 16;
constexpr int kResidentIntRows = 2;
constexpr int kFloatRows = 6;
constexpr int kFloatPanels = 1;
constexpr int kFewFloatRows = 4;
constexpr int kFloatChains = 4;

struct I {
  int32x4_t q[4];  // as V
};

LOCKSTEP_VEC int8x16_t LoadBytes(const std::byte* p) {
  return vld1q_s8(reinterpret_cast<const int8_t*>(p));
}
LOCKSTEP_VEC void StoreBytes(std::byte* p, int8x16_t v) {
  vst1q_s8(reinterpret_cast<int8_t*>(p), v);
}

LOCKSTEP_VEC V LoadF16(const uint16_t* p) {
  V out;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    out.q[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i)));
  }
  return out;
}
LOCKSTEP_VEC V ToF32(I v) {
  V out;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) out.q[i] = vcvtq_f32_s32(v.q[i]);
  return out;
}
LOCKSTEP_VEC I SetI(int32_t x) {
  const int32x4_t v = vdupq_n_s32(x);
  return {{v, v, v, v}};
}
LOCKSTEP_VEC I Sub(I a, I b) {
  I out;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) out.q[i] = vsubq_s32(a.q[i], b.q[i]);
  return out;
}

LOCKSTEP_VEC uint32_t LargestMagnitude(const float* x) {
  const uint32x4_t mask = vdupq_n_u32(0x7fffffff);
  uint32x4_t largest = vdupq_n_u32(0);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t bits = vreinterpretq_u32_f32(vld1q_f32(x + 4 * i));
    largest = vmaxq_u32(largest, vandq_u32(bits, mask));
  }
  return vmaxvq_u32(largest);
}
LOCKSTEP_VEC int32_t Encode(const float* x, float inverse, int8_t* codes) {
  int16x4_t words[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    words[i] = vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), inverse)));
  }
  const int16x8_t low = vcombine_s16(words[0], words[1]);
  const int16x8_t high = vcombine_s16(words[2], words[3]);
  vst1q_s8(codes, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
  return vaddvq_s16(vaddq_s16(low, high));
}
