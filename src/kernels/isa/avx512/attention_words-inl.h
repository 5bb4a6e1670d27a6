// The words of attention on AVX-512: the encoded elements of a cache. Their meaning is in
// generic/attention_words.md. A fragment: included after attention_elements-inl.h and vec-inl.h.

constexpr bool kFetches = true;

LOCKSTEP_VEC V Load(const Bf16* p) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m512i counts = _mm512_inserti64x4(_mm512_set1_epi32(16), _mm256_setzero_si256(), 1);
  const __m512i shifted = _mm512_sllv_epi32(_mm512_broadcast_i64x4(words), counts);
  return {_mm512_castsi512_ps(_mm512_and_si512(shifted, _mm512_set1_epi32(-0x10000)))};
}
LOCKSTEP_VEC V LoadHalf(const Bf16* p) { return LoadHalf(&p->bits); }
LOCKSTEP_VEC void Store(Bf16* p, V v) {
  const __m256i narrow = NarrowBf16(v);
  const __m256i low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(narrow));
  const __m256i high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(narrow, 1));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm256_or_si256(low, _mm256_slli_epi32(high, 16)));
}
LOCKSTEP_VEC void StoreHalf(Bf16* p, V v) { StoreHalf(&p->bits, v); }

LOCKSTEP_VEC V Load(const F16* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
LOCKSTEP_VEC V LoadHalf(const F16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtph_ps(_mm256_zextsi128_si256(bits))};
}
LOCKSTEP_VEC __m256i NarrowF16(V v) {
  return _mm512_cvtps_ph(v.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
LOCKSTEP_VEC void Store(F16* p, V v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), NarrowF16(v));
}
LOCKSTEP_VEC void StoreHalf(F16* p, V v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(NarrowF16(v)));
}

LOCKSTEP_VEC void AccumulateBroadcast(const float* p, V v, V* sum) { Accumulate(Set1(*p), v, sum); }

LOCKSTEP_VEC __m512i LoadBytes(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
LOCKSTEP_VEC V LoadU8(const uint8_t* p) { return {_mm512_cvtepi32_ps(LoadBytes(p))}; }
LOCKSTEP_VEC void LoadU4(const uint8_t* p, V* low, V* high) {
  const __m512i bytes = LoadBytes(p);
  *low = {_mm512_cvtepi32_ps(_mm512_and_si512(bytes, _mm512_set1_epi32(15)))};
  *high = {_mm512_cvtepi32_ps(_mm512_srli_epi32(bytes, 4))};
}

LOCKSTEP_VEC V PowerFromLowBits(V v) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v.v), 23))};
}
