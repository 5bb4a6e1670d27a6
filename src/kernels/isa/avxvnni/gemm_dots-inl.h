// Dots on AVX-VNNI: vpdpbusd of 256 bits multiplies unsigned weights by signed activations, so
// signed codes are taken as w + 128 and corrected by the row's sums (kBias).
//
// A fragment: included after avx2's gemm_words-inl.h.

// 16 outputs by one k-quad.
template <int R>
LOCKSTEP_VEC void Quad(__m256i lo, __m256i hi, int quad, const int8_t* codes, int64_t stride,
                       I (&sum)[R]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const I from = quad == 0 ? SetI(0) : sum[r];
    const __m256i four = Broadcast4(codes + r * stride + 4 * quad);
    sum[r].lo = _mm256_dpbusd_avx_epi32(from.lo, lo, four);
    sum[r].hi = _mm256_dpbusd_avx_epi32(from.hi, hi, four);
  }
}

LOCKSTEP_VEC __m256i LowCodes(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
LOCKSTEP_VEC __m256i HighCodes(__m256i v) { return LowCodes(_mm256_srli_epi16(v, 4)); }
LOCKSTEP_VEC __m256i Biased(__m256i v) { return _mm256_xor_si256(v, _mm256_set1_epi8(-128)); }

struct PackedU4 {
  static constexpr int kGroup = 32;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = true;
  static constexpr bool kUnpacked = false;
  using Code = int8_t;

  // The codes of part 0 are the low halves of the bytes, those of part 1 the high ones.
  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
#pragma GCC unroll 4
    for (int quad = 0; quad < 4; ++quad) {
      const __m256i a = LoadBytes(group + 64 * quad);
      const __m256i b = LoadBytes(group + 64 * quad + 32);
      Quad<R>(kPart == 0 ? LowCodes(a) : HighCodes(a), kPart == 0 ? LowCodes(b) : HighCodes(b),
              quad, codes, stride, sum);
    }
  }
};

template <int G>
struct PackedI8 {
  static constexpr int kGroup = G;
  static constexpr int kBias = 128;
  static constexpr bool kHasZero = false;
  static constexpr bool kUnpacked = false;
  using Code = int8_t;

  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    group += 256 * kPart;
#pragma GCC unroll 4
    for (int quad = 0; quad < 4; ++quad) {
      Quad<R>(Biased(LoadBytes(group + 64 * quad)), Biased(LoadBytes(group + 64 * quad + 32)), quad,
              codes, stride, sum);
    }
  }
};

// Unsigned bytes, k-quad by k-quad.
template <int G, int B>
struct UnpackedBytes {
  static constexpr int kGroup = G;
  static constexpr int kBias = B;
  static constexpr bool kHasZero = false;
  static constexpr size_t kCodeBytes = size_t{16} * G;
  static constexpr bool kUnpacked = true;
  using Code = int8_t;

  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    group += 256 * kPart;
#pragma GCC unroll 4
    for (int quad = 0; quad < 4; ++quad) {
      Quad<R>(LoadBytes(group + 64 * quad), LoadBytes(group + 64 * quad + 32), quad, codes, stride,
              sum);
    }
  }
};

struct UnpackedU4 : UnpackedBytes<32, 0> {
  static constexpr bool kHasZero = true;

  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    for (int i = 0; i < 256; i += 32) {
      const __m256i v = LoadBytes(from + i);
      StoreBytes(to + i, LowCodes(v));
      StoreBytes(to + 256 + i, HighCodes(v));
    }
  }
};

template <int G>
struct UnpackedI8 : UnpackedBytes<G, 128> {
  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    for (int i = 0; i < 16 * G; i += 32) StoreBytes(to + i, Biased(LoadBytes(from + i)));
  }
};
