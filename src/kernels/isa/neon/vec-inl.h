// The vocabulary of 16 virtual lanes on AArch64's Advanced SIMD: four q registers. The words and
// their exact meaning are in generic/vocabulary.md; every instruction set spells the same ones.
//
// A fragment: included inside a target region and the namespace of the instruction set, after
// <arm_neon.h>, <cstdint> and generic/inline.h.

constexpr int kAccumulators = 6;  // vectors that may accumulate without spilling

struct V {
  float32x4_t q[4];  // lanes 0..3, 4..7, 8..11, 12..15
};
struct M {
  uint32x4_t q[4];  // all bits of a lane set or clear
};

#define LOCKSTEP_QUARTERS(type, expression)                                           \
  type result;                                                                        \
  _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) { result.q[i] = (expression); } \
  return result

LOCKSTEP_VEC V Set1(float x) { LOCKSTEP_QUARTERS(V, vdupq_n_f32(x)); }
LOCKSTEP_VEC V Zero() { return Set1(0.0f); }

// The first n lanes; n <= 0 none, n >= 16 all.
LOCKSTEP_VEC M FirstN(int n) {
  const int32x4_t lanes = {0, 1, 2, 3};
  LOCKSTEP_QUARTERS(M, vcgtq_s32(vdupq_n_s32(n - 4 * i), lanes));
}

LOCKSTEP_VEC V Load(const float* p) { LOCKSTEP_QUARTERS(V, vld1q_f32(p + 4 * i)); }
LOCKSTEP_VEC V LoadHalf(const float* p) {
  LOCKSTEP_QUARTERS(V, i < 2 ? vld1q_f32(p + 4 * i) : vdupq_n_f32(0.0f));
}
LOCKSTEP_VEC V LoadN(const float* p, int n) {
  float lanes[16] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return Load(lanes);
}
LOCKSTEP_VEC void Store(float* p, V v) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, v.q[i]);
}
LOCKSTEP_VEC void StoreHalf(float* p, V v) {
  vst1q_f32(p, v.q[0]);
  vst1q_f32(p + 4, v.q[1]);
}
LOCKSTEP_VEC void StoreN(float* p, V v, int n) {
  float lanes[16];
  Store(lanes, v);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

LOCKSTEP_VEC float32x4_t LoadFour(const uint16_t* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
LOCKSTEP_VEC float32x4_t LoadFour(const float* p) { return vld1q_f32(p); }
LOCKSTEP_VEC V Load(const uint16_t* p) { LOCKSTEP_QUARTERS(V, LoadFour(p + 4 * i)); }
LOCKSTEP_VEC V LoadHalf(const uint16_t* p) {
  LOCKSTEP_QUARTERS(V, i < 2 ? LoadFour(p + 4 * i) : vdupq_n_f32(0.0f));
}

LOCKSTEP_VEC uint16x4_t NarrowBf16(float32x4_t v) {
  const uint32x4_t bits = vreinterpretq_u32_f32(v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet), 16);
}
LOCKSTEP_VEC void StoreHalf(uint16_t* p, V v) {
  vst1_u16(p, NarrowBf16(v.q[0]));
  vst1_u16(p + 4, NarrowBf16(v.q[1]));
}
LOCKSTEP_VEC void Store(uint16_t* p, V v) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, NarrowBf16(v.q[i]));
}

LOCKSTEP_VEC V Add(V a, V b) { LOCKSTEP_QUARTERS(V, vaddq_f32(a.q[i], b.q[i])); }
LOCKSTEP_VEC V Sub(V a, V b) { LOCKSTEP_QUARTERS(V, vsubq_f32(a.q[i], b.q[i])); }
LOCKSTEP_VEC V Mul(V a, V b) { LOCKSTEP_QUARTERS(V, vmulq_f32(a.q[i], b.q[i])); }
LOCKSTEP_VEC V Div(V a, V b) { LOCKSTEP_QUARTERS(V, vdivq_f32(a.q[i], b.q[i])); }
LOCKSTEP_VEC V Fma(V a, V b, V c) { LOCKSTEP_QUARTERS(V, vfmaq_f32(c.q[i], a.q[i], b.q[i])); }
LOCKSTEP_VEC V NegFma(V a, V b, V c) { LOCKSTEP_QUARTERS(V, vfmsq_f32(c.q[i], a.q[i], b.q[i])); }
LOCKSTEP_VEC void Accumulate(V a, V b, V* sum) {
  *sum = Fma(a, b, *sum);
  asm("" : "+w"(sum->q[0]), "+w"(sum->q[1]), "+w"(sum->q[2]), "+w"(sum->q[3]));
}
template <int R, class E>
LOCKSTEP_VEC void AccumulateRows(const E* p, const V (&rows)[R], V (&sum)[R]) {
  // A quarter after the other, so that one register is enough for what is loaded.
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const float32x4_t four = LoadFour(p + 4 * i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r].q[i] = vfmaq_f32(sum[r].q[i], rows[r].q[i], four);
      asm("" : "+w"(sum[r].q[i]));
    }
  }
}

// Not FMAX and FMIN, which give a NaN for a NaN and order the zeros.
LOCKSTEP_VEC float32x4_t Max(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
LOCKSTEP_VEC float32x4_t Min(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcltq_f32(a, b), a, b);
}
LOCKSTEP_VEC V Max(V a, V b) { LOCKSTEP_QUARTERS(V, Max(a.q[i], b.q[i])); }
LOCKSTEP_VEC V Min(V a, V b) { LOCKSTEP_QUARTERS(V, Min(a.q[i], b.q[i])); }

LOCKSTEP_VEC float32x4_t ExponentFromLowBits(float32x4_t v) {
  const int32x4_t shifted = vshlq_n_s32(vreinterpretq_s32_f32(v), 23);
  return vreinterpretq_f32_s32(vaddq_s32(shifted, vdupq_n_s32(126 << 23)));
}
LOCKSTEP_VEC V ExponentFromLowBits(V v) { LOCKSTEP_QUARTERS(V, ExponentFromLowBits(v.q[i])); }

LOCKSTEP_VEC M IsNan(V a) { LOCKSTEP_QUARTERS(M, vmvnq_u32(vceqq_f32(a.q[i], a.q[i]))); }
LOCKSTEP_VEC M Equal(V a, V b) { LOCKSTEP_QUARTERS(M, vceqq_f32(a.q[i], b.q[i])); }
LOCKSTEP_VEC M Or(M a, M b) { LOCKSTEP_QUARTERS(M, vorrq_u32(a.q[i], b.q[i])); }
LOCKSTEP_VEC M NoLanes() { LOCKSTEP_QUARTERS(M, vdupq_n_u32(0)); }
LOCKSTEP_VEC uint32_t Bits(M m) {
  const uint32x4_t weights = {1, 2, 4, 8};
  uint32_t bits = 0;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) bits |= vaddvq_u32(vandq_u32(m.q[i], weights)) << (4 * i);
  return bits;
}
LOCKSTEP_VEC V Select(M m, V yes, V no) {
  LOCKSTEP_QUARTERS(V, vbslq_f32(m.q[i], yes.q[i], no.q[i]));
}

#undef LOCKSTEP_QUARTERS

// The tree of generic/vocabulary.md: i with i + 8, i + 4, i + 2, i + 1.
LOCKSTEP_VEC float ReduceAdd(V v) {
  const float32x4_t four = vaddq_f32(vaddq_f32(v.q[0], v.q[2]), vaddq_f32(v.q[1], v.q[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
LOCKSTEP_VEC float ReduceMax(V v) {
  const float32x4_t four = Max(Max(v.q[0], v.q[2]), Max(v.q[1], v.q[3]));
  const float32x4_t two = Max(four, vextq_f32(four, four, 2));
  const float a = vgetq_lane_f32(two, 0), b = vgetq_lane_f32(two, 1);
  return a > b ? a : b;
}
