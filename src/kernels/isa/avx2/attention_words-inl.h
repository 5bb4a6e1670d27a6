// The words of attention on AVX2 and F16C: the encoded elements of a cache. Their meaning is in
// generic/attention_words.md. A fragment: included after attention_elements-inl.h and vec-inl.h.

constexpr bool kFetches = true;

LOCKSTEP_VEC __m256i LoadWords(const Bf16* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
LOCKSTEP_VEC __m256 LowHalves(__m256i words) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
}
alignas(32) constexpr uint32_t kHighHalf[8] = {0xffff0000u, 0xffff0000u, 0xffff0000u, 0xffff0000u,
                                               0xffff0000u, 0xffff0000u, 0xffff0000u, 0xffff0000u};
// The mask stays in memory: a register kept for it is one that a tile's accumulators lack.
LOCKSTEP_VEC __m256 HighHalves(__m256i words) {
  __m256i high;
  asm("vpand %2, %1, %0"
      : "=x"(high)
      : "x"(words), "m"(*reinterpret_cast<const __m256i*>(kHighHalf)));
  return _mm256_castsi256_ps(high);
}
LOCKSTEP_VEC V Load(const Bf16* p) {
  const __m256i words = LoadWords(p);
  return {LowHalves(words), HighHalves(words)};
}
LOCKSTEP_VEC V LoadHalf(const Bf16* p) { return LoadHalf(&p->bits); }
LOCKSTEP_VEC void Store(Bf16* p, V v) {
  const __m256i high = _mm256_slli_epi32(NarrowBf16(v.hi), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_or_si256(NarrowBf16(v.lo), high));
}
LOCKSTEP_VEC void StoreHalf(Bf16* p, V v) { StoreHalf(&p->bits, v); }

LOCKSTEP_VEC __m256 LoadEight(const F16* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
LOCKSTEP_VEC V Load(const F16* p) { return {LoadEight(p), LoadEight(p + 8)}; }
LOCKSTEP_VEC V LoadHalf(const F16* p) { return {LoadEight(p), _mm256_setzero_ps()}; }
LOCKSTEP_VEC void StoreHalf(F16* p, V v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(v.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
LOCKSTEP_VEC void Store(F16* p, V v) {
  StoreHalf(p, v);
  StoreHalf(p + 8, {v.hi, v.hi});
}

// Written out, since a compiler that is left to order the broadcasts of a tile spills.
LOCKSTEP_VEC void AccumulateBroadcast(const float* p, V v, V* sum) {
  __m256 all;
  asm("vbroadcastss %3, %0\n\t"
      "vfmadd231ps %4, %0, %1\n\t"
      "vfmadd231ps %5, %0, %2"
      : "=&x"(all), "+x"(sum->lo), "+x"(sum->hi)
      : "m"(*p), "x"(v.lo), "x"(v.hi));
}

LOCKSTEP_VEC __m256i LoadBytes(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
LOCKSTEP_VEC V LoadU8(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(LoadBytes(p)), _mm256_cvtepi32_ps(LoadBytes(p + 8))};
}
LOCKSTEP_VEC void LoadU4(const uint8_t* p, V* low, V* high) {
  const __m256i mask = _mm256_set1_epi32(15), first = LoadBytes(p), second = LoadBytes(p + 8);
  *low = {_mm256_cvtepi32_ps(_mm256_and_si256(first, mask)),
          _mm256_cvtepi32_ps(_mm256_and_si256(second, mask))};
  *high = {_mm256_cvtepi32_ps(_mm256_srli_epi32(first, 4)),
           _mm256_cvtepi32_ps(_mm256_srli_epi32(second, 4))};
}

LOCKSTEP_VEC V PowerFromLowBits(V v) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v.lo), 23)),
          _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v.hi), 23))};
}
