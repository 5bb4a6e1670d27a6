// The words of gemm_words.md on AVX2, FMA and F16C.
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
  __m256i lo, hi;
};

LOCKSTEP_VEC __m256i LoadBytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
LOCKSTEP_VEC void StoreBytes(void* p, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), v);
}

// Holds the compiler to the order of integer sums as written; it would regroup them and spill.
LOCKSTEP_VEC void Keep(__m256i& v) { asm("" : "+x"(v)); }

// Four bytes in every lane.
LOCKSTEP_VEC __m256i Broadcast4(const void* p) {
  int32_t four;
  std::memcpy(&four, p, sizeof(four));
  return _mm256_set1_epi32(four);
}

LOCKSTEP_VEC V LoadF16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
LOCKSTEP_VEC V ToF32(I v) { return {_mm256_cvtepi32_ps(v.lo), _mm256_cvtepi32_ps(v.hi)}; }
LOCKSTEP_VEC I SetI(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
LOCKSTEP_VEC I Sub(I a, I b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}

LOCKSTEP_VEC uint32_t LargestMagnitude(const float* x) {
  const __m256i mask = _mm256_set1_epi32(0x7fffffff);
  __m256i m = _mm256_and_si256(LoadBytes(x), mask);
  m = _mm256_max_epi32(m, _mm256_and_si256(LoadBytes(x + 8), mask));
  __m128i n = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
  n = _mm_max_epi32(n, _mm_shuffle_epi32(n, 0x4e));
  n = _mm_max_epi32(n, _mm_shuffle_epi32(n, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(n));
}
LOCKSTEP_VEC int32_t Encode(const float* x, float inverse, int8_t* codes) {
  const __m256 factor = _mm256_set1_ps(inverse);
  const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), factor));
  const __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), factor));
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
  const __m128i low = _mm256_castsi256_si128(words);
  const __m128i high = _mm256_extracti128_si256(words, 1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm_packs_epi16(low, high));
  __m128i sum = _mm_madd_epi16(_mm_add_epi16(low, high), _mm_set1_epi16(1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}
