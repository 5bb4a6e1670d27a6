// The vocabulary of 16 virtual lanes on AVX2, FMA and F16C: two ymm registers. The words and their
// exact meaning are in generic/vocabulary.md; every instruction set spells the same ones.
//
// A fragment: included inside a target region and the namespace of the instruction set, after
// <immintrin.h>, <cstdint> and generic/inline.h.

constexpr int kAccumulators = 6;  // vectors that may accumulate without spilling

struct V {
  __m256 lo, hi;  // lanes 0..7 and 8..15
};
struct M {
  __m256 lo, hi;  // all bits of a lane set or clear
};

LOCKSTEP_VEC V Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
LOCKSTEP_VEC V Set1(float x) {
  const __m256 v = _mm256_set1_ps(x);
  return {v, v};
}

// The first n lanes; n <= 0 none, n >= 16 all.
LOCKSTEP_VEC M FirstN(int n) {
  const __m256i count = _mm256_set1_epi32(n);
  const __m256i lo = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i hi = _mm256_add_epi32(lo, _mm256_set1_epi32(8));
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(count, lo)),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, hi))};
}

LOCKSTEP_VEC V Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
LOCKSTEP_VEC V LoadHalf(const float* p) { return {_mm256_loadu_ps(p), _mm256_setzero_ps()}; }
// Through memory: a masked load may take a fault's slow path near the end of a page, and an
// emulator may read all of it.
LOCKSTEP_VEC V LoadN(const float* p, int n) {
  float lanes[16] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return Load(lanes);
}
LOCKSTEP_VEC void Store(float* p, V v) {
  _mm256_storeu_ps(p, v.lo);
  _mm256_storeu_ps(p + 8, v.hi);
}
LOCKSTEP_VEC void StoreHalf(float* p, V v) { _mm256_storeu_ps(p, v.lo); }
LOCKSTEP_VEC void StoreN(float* p, V v, int n) {
  float lanes[16];
  Store(lanes, v);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

LOCKSTEP_VEC __m256 LoadEight(const uint16_t* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
LOCKSTEP_VEC __m256 LoadEight(const float* p) { return _mm256_loadu_ps(p); }
LOCKSTEP_VEC V Load(const uint16_t* p) { return {LoadEight(p), LoadEight(p + 8)}; }
LOCKSTEP_VEC V LoadHalf(const uint16_t* p) { return {LoadEight(p), _mm256_setzero_ps()}; }

// Eight f32 to bf16, each in the low half of its 32-bit lane.
LOCKSTEP_VEC __m256i NarrowBf16(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, quiet, nan);
}
LOCKSTEP_VEC void Store(uint16_t* p, V v) {
  const __m256i packed = _mm256_packus_epi32(NarrowBf16(v.lo), NarrowBf16(v.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
LOCKSTEP_VEC void StoreHalf(uint16_t* p, V v) {
  const __m256i packed = _mm256_packus_epi32(NarrowBf16(v.lo), _mm256_setzero_si256());
  const __m256i ordered = _mm256_permute4x64_epi64(packed, 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(ordered));
}

LOCKSTEP_VEC V Add(V a, V b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
LOCKSTEP_VEC V Sub(V a, V b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
LOCKSTEP_VEC V Mul(V a, V b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
LOCKSTEP_VEC V Div(V a, V b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
LOCKSTEP_VEC V Fma(V a, V b, V c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
LOCKSTEP_VEC void Accumulate(V a, V b, V* sum) {
  *sum = Fma(a, b, *sum);
  asm("" : "+x"(sum->lo), "+x"(sum->hi));
}
template <int R, class E>
LOCKSTEP_VEC void AccumulateRows(const E* p, const V (&rows)[R], V (&sum)[R]) {
  // A half after the other, so that one register is enough for what is loaded.
  const __m256 lo = LoadEight(p);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    sum[r].lo = _mm256_fmadd_ps(rows[r].lo, lo, sum[r].lo);
    asm("" : "+x"(sum[r].lo));
  }
  const __m256 hi = LoadEight(p + 8);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    sum[r].hi = _mm256_fmadd_ps(rows[r].hi, hi, sum[r].hi);
    asm("" : "+x"(sum[r].hi));
  }
}
LOCKSTEP_VEC V NegFma(V a, V b, V c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
LOCKSTEP_VEC V Max(V a, V b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
LOCKSTEP_VEC V Min(V a, V b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }

LOCKSTEP_VEC __m256 ExponentFromLowBits(__m256 v) {
  const __m256i shifted = _mm256_slli_epi32(_mm256_castps_si256(v), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(shifted, _mm256_set1_epi32(126 << 23)));
}
LOCKSTEP_VEC V ExponentFromLowBits(V v) {
  return {ExponentFromLowBits(v.lo), ExponentFromLowBits(v.hi)};
}

LOCKSTEP_VEC M IsNan(V a) {
  return {_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q), _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q)};
}
LOCKSTEP_VEC M Equal(V a, V b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
LOCKSTEP_VEC M Or(M a, M b) { return {_mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi)}; }
LOCKSTEP_VEC M NoLanes() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
LOCKSTEP_VEC uint32_t Bits(M m) {
  return static_cast<uint32_t>(_mm256_movemask_ps(m.lo)) |
         static_cast<uint32_t>(_mm256_movemask_ps(m.hi)) << 8;
}
LOCKSTEP_VEC V Select(M m, V yes, V no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}

// The tree of generic/vocabulary.md: i with i + 8, i + 4, i + 2, i + 1.
LOCKSTEP_VEC float ReduceAdd(V v) {
  const __m256 eight = _mm256_add_ps(v.lo, v.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
LOCKSTEP_VEC float ReduceMax(V v) {
  const __m256 eight = _mm256_max_ps(v.lo, v.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
