// The vocabulary of 16 virtual lanes on AVX-512 F, BW, DQ and VL: one zmm register. The words and
// their exact meaning are in generic/vocabulary.md; every instruction set spells the same ones.
//
// A fragment: included inside a target region and the namespace of the instruction set, after
// <immintrin.h>, <cstdint> and generic/inline.h.

constexpr int kAccumulators = 24;  // vectors that may accumulate without spilling

struct V {
  __m512 v;
};
struct M {
  __mmask16 m;
};

LOCKSTEP_VEC V Zero() { return {_mm512_setzero_ps()}; }
LOCKSTEP_VEC V Set1(float x) { return {_mm512_set1_ps(x)}; }

// The first n lanes; n <= 0 none, n >= 16 all.
LOCKSTEP_VEC M FirstN(int n) {
  const int count = n < 0 ? 0 : (n > 16 ? 16 : n);
  return {static_cast<__mmask16>((1u << count) - 1u)};
}

LOCKSTEP_VEC V Load(const float* p) { return {_mm512_loadu_ps(p)}; }
LOCKSTEP_VEC V LoadHalf(const float* p) { return {_mm512_maskz_loadu_ps(0xff, p)}; }
LOCKSTEP_VEC V LoadN(const float* p, int n) { return {_mm512_maskz_loadu_ps(FirstN(n).m, p)}; }
LOCKSTEP_VEC void Store(float* p, V v) { _mm512_storeu_ps(p, v.v); }
LOCKSTEP_VEC void StoreHalf(float* p, V v) { _mm512_mask_storeu_ps(p, 0xff, v.v); }
LOCKSTEP_VEC void StoreN(float* p, V v, int n) { _mm512_mask_storeu_ps(p, FirstN(n).m, v.v); }

LOCKSTEP_VEC V WidenBf16(__m256i bits) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
LOCKSTEP_VEC V Load(const uint16_t* p) {
  return WidenBf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
LOCKSTEP_VEC V LoadHalf(const uint16_t* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return WidenBf16(_mm256_zextsi128_si256(bits));
}

LOCKSTEP_VEC __m256i NarrowBf16(V v) {
  const __m512i bits = _mm512_castps_si512(v.v);
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const __mmask16 nan = _mm512_cmp_ps_mask(v.v, v.v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet));
}
LOCKSTEP_VEC void Store(uint16_t* p, V v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), NarrowBf16(v));
}
LOCKSTEP_VEC void StoreHalf(uint16_t* p, V v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(NarrowBf16(v)));
}

LOCKSTEP_VEC V Add(V a, V b) { return {_mm512_add_ps(a.v, b.v)}; }
LOCKSTEP_VEC V Sub(V a, V b) { return {_mm512_sub_ps(a.v, b.v)}; }
LOCKSTEP_VEC V Mul(V a, V b) { return {_mm512_mul_ps(a.v, b.v)}; }
LOCKSTEP_VEC V Div(V a, V b) { return {_mm512_div_ps(a.v, b.v)}; }
LOCKSTEP_VEC V Fma(V a, V b, V c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
LOCKSTEP_VEC void Accumulate(V a, V b, V* sum) {
  *sum = Fma(a, b, *sum);
  asm("" : "+v"(sum->v));
}
template <int R, class E>
LOCKSTEP_VEC void AccumulateRows(const E* p, const V (&rows)[R], V (&sum)[R]) {
  const V v = Load(p);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) Accumulate(rows[r], v, &sum[r]);
}
LOCKSTEP_VEC V NegFma(V a, V b, V c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
LOCKSTEP_VEC V Max(V a, V b) { return {_mm512_max_ps(a.v, b.v)}; }
LOCKSTEP_VEC V Min(V a, V b) { return {_mm512_min_ps(a.v, b.v)}; }

LOCKSTEP_VEC V ExponentFromLowBits(V v) {
  const __m512i shifted = _mm512_slli_epi32(_mm512_castps_si512(v.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(shifted, _mm512_set1_epi32(126 << 23)))};
}

LOCKSTEP_VEC M IsNan(V a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
LOCKSTEP_VEC M Equal(V a, V b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
LOCKSTEP_VEC M Or(M a, M b) { return {static_cast<__mmask16>(a.m | b.m)}; }
LOCKSTEP_VEC M NoLanes() { return {0}; }
LOCKSTEP_VEC uint32_t Bits(M m) { return m.m; }
LOCKSTEP_VEC V Select(M m, V yes, V no) { return {_mm512_mask_blend_ps(m.m, no.v, yes.v)}; }

// The tree of generic/vocabulary.md: i with i + 8, i + 4, i + 2, i + 1. Not _mm512_reduce_add_ps,
// whose tree is the compiler's choice.
LOCKSTEP_VEC float ReduceAdd(V v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v.v), _mm512_extractf32x8_ps(v.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
LOCKSTEP_VEC float ReduceMax(V v) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v.v), _mm512_extractf32x8_ps(v.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
