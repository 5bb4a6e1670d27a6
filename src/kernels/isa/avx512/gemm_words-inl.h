// The words of gemm_words.md on AVX-512 F, BW, DQ, VL and VNNI.
//
// A fragment: included after vec-inl.h.

constexpr int kIntRows = 8;
constexpr int kFewIntRows = 16;
constexpr int kResidentIntRows = 8;
constexpr int kFloatRows = 8;
constexpr int kFloatPanels = 2;
constexpr int kFewFloatRows = 4;
constexpr int kFloatChains = 8;

struct I {
  __m512i v;
};

LOCKSTEP_VEC __m512i Broadcast4(const void* p) {
  int32_t four;
  std::memcpy(&four, p, sizeof(four));
  return _mm512_set1_epi32(four);
}

LOCKSTEP_VEC V LoadF16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
LOCKSTEP_VEC V ToF32(I v) { return {_mm512_cvtepi32_ps(v.v)}; }
LOCKSTEP_VEC I SetI(int32_t x) { return {_mm512_set1_epi32(x)}; }
LOCKSTEP_VEC I Sub(I a, I b) { return {_mm512_sub_epi32(a.v, b.v)}; }

LOCKSTEP_VEC uint32_t LargestMagnitude(const float* x) {
  const __m512i mask = _mm512_set1_epi32(0x7fffffff);
  return _mm512_reduce_max_epu32(_mm512_and_si512(_mm512_loadu_si512(x), mask));
}
LOCKSTEP_VEC int32_t Encode(const float* x, float inverse, int8_t* codes) {
  const __m512i v = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(inverse)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtepi32_epi8(v));
  return _mm512_reduce_add_epi32(v);
}
