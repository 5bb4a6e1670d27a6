// Dots on AVX2: 16 unsigned 4-bit codes are multiplied and added up in 16 bits (4 products of
// pairs, at most 4 * 2 * 15 * 127 < 2^15) and widened once; 8-bit codes need 32-bit
// sums.
//
// A fragment: included after gemm_words-inl.h.

// 16 outputs by one k-quad of unsigned 4-bit codes, added up in 16 bits.
template <int R, int kQuad>
LOCKSTEP_VEC void Quad4(__m256i lo, __m256i hi, const int8_t* codes, int64_t stride, I (&sum)[R]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const __m256i four = Broadcast4(codes + r * stride + 4 * kQuad);
    const __m256i a = _mm256_maddubs_epi16(lo, four);
    const __m256i b = _mm256_maddubs_epi16(hi, four);
    sum[r].lo = kQuad == 0 ? a : _mm256_add_epi16(sum[r].lo, a);
    sum[r].hi = kQuad == 0 ? b : _mm256_add_epi16(sum[r].hi, b);
    Keep(sum[r].lo);
    Keep(sum[r].hi);
  }
}
template <int R>
LOCKSTEP_VEC void WidenSums(I (&sum)[R]) {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    sum[r].lo = _mm256_madd_epi16(sum[r].lo, ones);
    sum[r].hi = _mm256_madd_epi16(sum[r].hi, ones);
  }
}

struct PackedU4 {
  static constexpr int kGroup = 32;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = true;
  static constexpr bool kUnpacked = false;
  using Code = int8_t;

  // The codes of part 0 are the low halves of the bytes, those of part 1 the high ones.
  template <int R, int kPart, int kChunk>
  [[gnu::always_inline]] static inline void Chunk(const std::byte* group, const int8_t* codes,
                                                  int64_t stride, I (&sum)[R]) {
    const __m256i mask = _mm256_set1_epi8(15);
    __m256i a = LoadBytes(group + 64 * kChunk);
    __m256i b = LoadBytes(group + 64 * kChunk + 32);
    if constexpr (kPart == 1) {
      a = _mm256_srli_epi16(a, 4);
      b = _mm256_srli_epi16(b, 4);
    }
    Quad4<R, kChunk>(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask), codes, stride, sum);
  }
  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    Chunk<R, kPart, 0>(group, codes, stride, sum);
    Chunk<R, kPart, 1>(group, codes, stride, sum);
    Chunk<R, kPart, 2>(group, codes, stride, sum);
    Chunk<R, kPart, 3>(group, codes, stride, sum);
    WidenSums<R>(sum);
  }
};

// Codes in bytes, k-quad by k-quad.
struct UnpackedU4 {
  static constexpr int kGroup = 32;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = true;
  static constexpr size_t kCodeBytes = 512;
  static constexpr bool kUnpacked = true;
  using Code = int8_t;

  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    const __m256i mask = _mm256_set1_epi8(15);
    for (int i = 0; i < 256; i += 32) {
      const __m256i v = LoadBytes(from + i);
      StoreBytes(to + i, _mm256_and_si256(v, mask));
      StoreBytes(to + 256 + i, _mm256_and_si256(_mm256_srli_epi16(v, 4), mask));
    }
  }
  template <int R, int kQuad>
  [[gnu::always_inline]] static inline void Quad(const std::byte* group, const int8_t* codes,
                                                 int64_t stride, I (&sum)[R]) {
    Quad4<R, kQuad>(LoadBytes(group + 64 * kQuad), LoadBytes(group + 64 * kQuad + 32), codes,
                    stride, sum);
  }
  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    group += 256 * kPart;
    Quad<R, 0>(group, codes, stride, sum);
    Quad<R, 1>(group, codes, stride, sum);
    Quad<R, 2>(group, codes, stride, sum);
    Quad<R, 3>(group, codes, stride, sum);
    WidenSums<R>(sum);
  }
};

// Signed codes as they are: |w| unsigned by the activation with w's sign; a pair is at most
// 2 * 128 * 127 < 2^15.
template <int G>
struct PackedI8 {
  static constexpr int kGroup = G;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = false;
  static constexpr bool kUnpacked = false;
  using Code = int8_t;

  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    const __m256i ones = _mm256_set1_epi16(1);
    group += 256 * kPart;
#pragma GCC unroll 8
    for (int quad = 0; quad < 4; ++quad) {
      const __m256i lo = LoadBytes(group + 64 * quad);
      const __m256i hi = LoadBytes(group + 64 * quad + 32);
      const __m256i abs_lo = _mm256_abs_epi8(lo);
      const __m256i abs_hi = _mm256_abs_epi8(hi);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i four = Broadcast4(codes + r * stride + 4 * quad);
        const __m256i a =
            _mm256_madd_epi16(_mm256_maddubs_epi16(abs_lo, _mm256_sign_epi8(four, lo)), ones);
        const __m256i b =
            _mm256_madd_epi16(_mm256_maddubs_epi16(abs_hi, _mm256_sign_epi8(four, hi)), ones);
        sum[r].lo = quad == 0 ? a : _mm256_add_epi32(sum[r].lo, a);
        sum[r].hi = quad == 0 ? b : _mm256_add_epi32(sum[r].hi, b);
        Keep(sum[r].lo);
        Keep(sum[r].hi);
      }
    }
  }
};

// Codes in 16 bits: of each k-quad first codes 0 and 2 of all outputs, then codes 1 and 3.
template <int G>
struct UnpackedI8 {
  static constexpr int kGroup = G;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = false;
  static constexpr size_t kCodeBytes = size_t{2} * 16 * G;
  static constexpr bool kUnpacked = true;
  using Code = int16_t;

  // The row's codes likewise: of each k-quad first 0 and 2, then 1 and 3.
  static void WidenCodes(const int8_t* codes, int64_t n, int16_t* wide) {
    for (int64_t i = 0; i < n; i += 16) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i));
      const __m128i even = _mm_srai_epi16(_mm_slli_epi16(v, 8), 8);
      const __m128i odd = _mm_srai_epi16(v, 8);
      auto* to = reinterpret_cast<__m128i*>(wide + i);
      _mm_storeu_si128(to, _mm_unpacklo_epi32(even, odd));
      _mm_storeu_si128(to + 1, _mm_unpackhi_epi32(even, odd));
    }
  }

  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    for (int quad = 0; quad < G / 4; ++quad, from += 64, to += 128) {
      for (int half = 0; half < 64; half += 32) {
        const __m256i v = LoadBytes(from + half);
        StoreBytes(to + half, _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8));
        StoreBytes(to + 64 + half, _mm256_srai_epi16(v, 8));
      }
    }
  }
  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int16_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    group += 512 * kPart;
#pragma GCC unroll 16
    for (int pair = 0; pair < 8; ++pair) {
      const __m256i lo = LoadBytes(group + 64 * pair);
      const __m256i hi = LoadBytes(group + 64 * pair + 32);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i two = Broadcast4(codes + r * stride + 2 * pair);
        const __m256i a = _mm256_madd_epi16(lo, two);
        const __m256i b = _mm256_madd_epi16(hi, two);
        sum[r].lo = pair == 0 ? a : _mm256_add_epi32(sum[r].lo, a);
        sum[r].hi = pair == 0 ? b : _mm256_add_epi32(sum[r].hi, b);
        Keep(sum[r].lo);
        Keep(sum[r].hi);
      }
    }
  }
};
