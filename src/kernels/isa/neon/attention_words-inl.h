// The words of attention on Advanced SIMD: the encoded elements of a cache. Their meaning is in
// generic/attention_words.md. A fragment: included after attention_elements-inl.h and vec-inl.h.

constexpr bool kFetches = true;

LOCKSTEP_VEC V Load(const Bf16* p) {
  const uint32x4_t a = vreinterpretq_u32_u16(vld1q_u16(&p->bits));
  const uint32x4_t b = vreinterpretq_u32_u16(vld1q_u16(&p[8].bits));
  const uint32x4_t high = vdupq_n_u32(0xffff0000u);
  return {{vreinterpretq_f32_u32(vshlq_n_u32(a, 16)), vreinterpretq_f32_u32(vshlq_n_u32(b, 16)),
           vreinterpretq_f32_u32(vandq_u32(a, high)), vreinterpretq_f32_u32(vandq_u32(b, high))}};
}
LOCKSTEP_VEC V LoadHalf(const Bf16* p) { return LoadHalf(&p->bits); }
LOCKSTEP_VEC void Store(Bf16* p, V v) {
  const uint16x8_t low = vcombine_u16(NarrowBf16(v.q[0]), NarrowBf16(v.q[1]));
  const uint16x8_t high = vcombine_u16(NarrowBf16(v.q[2]), NarrowBf16(v.q[3]));
  vst1q_u16(&p->bits, vzip1q_u16(low, high));
  vst1q_u16(&p[8].bits, vzip2q_u16(low, high));
}
LOCKSTEP_VEC void StoreHalf(Bf16* p, V v) { StoreHalf(&p->bits, v); }

LOCKSTEP_VEC float32x4_t LoadFour(const F16* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&p->bits)));
}
LOCKSTEP_VEC void StoreFour(F16* p, float32x4_t v) {
  vst1_u16(&p->bits, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}
LOCKSTEP_VEC V Load(const F16* p) {
  return {{LoadFour(p), LoadFour(p + 4), LoadFour(p + 8), LoadFour(p + 12)}};
}
LOCKSTEP_VEC V LoadHalf(const F16* p) {
  return {{LoadFour(p), LoadFour(p + 4), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)}};
}
LOCKSTEP_VEC void StoreHalf(F16* p, V v) {
  StoreFour(p, v.q[0]);
  StoreFour(p + 4, v.q[1]);
}
LOCKSTEP_VEC void Store(F16* p, V v) {
  StoreHalf(p, v);
  StoreFour(p + 8, v.q[2]);
  StoreFour(p + 12, v.q[3]);
}

LOCKSTEP_VEC void AccumulateBroadcast(const float* p, V v, V* sum) { Accumulate(Set1(*p), v, sum); }

LOCKSTEP_VEC V WidenBytes(uint8x16_t bytes) {
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
  return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_high_u16(low)),
           vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_high_u16(high))}};
}
LOCKSTEP_VEC V LoadU8(const uint8_t* p) { return WidenBytes(vld1q_u8(p)); }
LOCKSTEP_VEC void LoadU4(const uint8_t* p, V* low, V* high) {
  const uint8x16_t bytes = vld1q_u8(p);
  *low = WidenBytes(vandq_u8(bytes, vdupq_n_u8(15)));
  *high = WidenBytes(vshrq_n_u8(bytes, 4));
}

LOCKSTEP_VEC V PowerFromLowBits(V v) {
  V power;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    power.q[i] = vreinterpretq_f32_s32(vshlq_n_s32(vreinterpretq_s32_f32(v.q[i]), 23));
  }
  return power;
}
