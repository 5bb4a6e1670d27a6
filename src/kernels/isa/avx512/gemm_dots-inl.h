// Dots on AVX-512 VNNI: vpdpbusd multiplies unsigned weights by signed activations, so signed codes
// are taken as w + 128 and corrected by the row's sums (kBias).
//
// A fragment: included after gemm_words-inl.h.

template <int R>
LOCKSTEP_VEC void Quad(__m512i w, int quad, const int8_t* codes, int64_t stride, I (&sum)[R]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    sum[r].v = _mm512_dpbusd_epi32(quad == 0 ? _mm512_setzero_si512() : sum[r].v, w,
                                   Broadcast4(codes + r * stride + 4 * quad));
  }
}

struct PackedU4 {
  static constexpr int kGroup = 32;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = true;
  static constexpr bool kUnpacked = false;
  using Code = int8_t;

  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    const __m512i mask = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int chunk = 0; chunk < 4; ++chunk) {
      const __m512i v = _mm512_loadu_si512(group + 64 * chunk);
      const __m512i part = kPart == 0 ? v : _mm512_srli_epi16(v, 4);
      Quad<R>(_mm512_and_si512(part, mask), chunk, codes, stride, sum);
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
      Quad<R>(_mm512_loadu_si512(group + 64 * quad), quad, codes, stride, sum);
    }
  }
};

struct UnpackedU4 : UnpackedBytes<32, 0> {
  static constexpr bool kHasZero = true;

  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    const __m512i mask = _mm512_set1_epi8(15);
    for (int i = 0; i < 256; i += 64) {
      const __m512i v = _mm512_loadu_si512(from + i);
      _mm512_storeu_si512(to + i, _mm512_and_si512(v, mask));
      _mm512_storeu_si512(to + 256 + i, _mm512_and_si512(_mm512_srli_epi16(v, 4), mask));
    }
  }
};

LOCKSTEP_VEC __m512i Biased(const std::byte* p) {
  return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128));
}

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
      Quad<R>(Biased(group + 64 * quad), quad, codes, stride, sum);
    }
  }
};

template <int G>
struct UnpackedI8 : UnpackedBytes<G, 128> {
  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    for (int i = 0; i < 16 * G; i += 64) _mm512_storeu_si512(to + i, Biased(from + i));
  }
};
