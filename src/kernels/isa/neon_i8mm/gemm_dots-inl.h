// Dots on unpacked codes with i8mm: smmla multiplies 2 rows by 2 outputs over 8 k's, twice the work
// of a sdot.
//
// A fragment: included after neon's gemm_packed_dots-inl.h.

LOCKSTEP_VEC int64x2_t AsPairs(int8x16_t v) { return vreinterpretq_s64_s8(v); }
LOCKSTEP_VEC int64x2_t AsPairs(int32x4_t v) { return vreinterpretq_s64_s32(v); }

// The signed codes of an activation group as smmla reads them: of outputs 4 i to 4 i + 3 the k's 0
// to 7 and 8 to 15 of the first two, then of the last two, [2 outputs][8] each. `w` holds the
// k-quads of the four outputs as they are packed.
LOCKSTEP_VEC void StorePairs(const int8x16_t (&w)[4], std::byte* to) {
  const int32x4_t a = vreinterpretq_s32_s8(w[0]), b = vreinterpretq_s32_s8(w[1]);
  const int32x4_t c = vreinterpretq_s32_s8(w[2]), d = vreinterpretq_s32_s8(w[3]);
  StoreBytes(to, vreinterpretq_s8_s32(vzip1q_s32(a, b)));
  StoreBytes(to + 16, vreinterpretq_s8_s32(vzip1q_s32(c, d)));
  StoreBytes(to + 32, vreinterpretq_s8_s32(vzip2q_s32(a, b)));
  StoreBytes(to + 48, vreinterpretq_s8_s32(vzip2q_s32(c, d)));
}

template <int G>
struct UnpackedPairs {
  static constexpr int kGroup = G;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = false;
  static constexpr size_t kCodeBytes = size_t{16} * G;
  static constexpr bool kUnpacked = true;
  using Code = int8_t;

  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    constexpr int kPairs = (R + 1) / 2;
    int8x16_t low[kPairs], high[kPairs];  // k's 0 to 7 and 8 to 15 of both rows
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      const int64x2_t a = AsPairs(vld1q_s8(codes + 2 * p * stride));
      // A row without another is paired with itself.
      const int64x2_t b = 2 * p + 1 < R ? AsPairs(vld1q_s8(codes + (2 * p + 1) * stride)) : a;
      low[p] = vreinterpretq_s8_s64(vzip1q_s64(a, b));
      high[p] = vreinterpretq_s8_s64(vzip2q_s64(a, b));
    }
    group += 256 * kPart;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i, group += 64) {
      const int8x16_t first_low = LoadBytes(group), first_high = LoadBytes(group + 16);
      const int8x16_t last_low = LoadBytes(group + 32), last_high = LoadBytes(group + 48);
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        // [2 rows][2 outputs].
        int32x4_t first = vmmlaq_s32(vdupq_n_s32(0), low[p], first_low);
        int32x4_t last = vmmlaq_s32(vdupq_n_s32(0), low[p], last_low);
        first = vmmlaq_s32(first, high[p], first_high);
        last = vmmlaq_s32(last, high[p], last_high);
        const int64x2_t a = AsPairs(first), b = AsPairs(last);
        sum[2 * p].q[i] = vreinterpretq_s32_s64(vzip1q_s64(a, b));
        if (2 * p + 1 < R) sum[2 * p + 1].q[i] = vreinterpretq_s32_s64(vzip2q_s64(a, b));
      }
    }
  }
};

struct UnpackedU4 : UnpackedPairs<32> {
  static constexpr bool kHasZero = true;

  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    for (int i = 0; i < 4; ++i, from += 16, to += 64) {
      int8x16_t low[4], high[4];
#pragma GCC unroll 4
      for (int quad = 0; quad < 4; ++quad) {
        const uint8x16_t v = vreinterpretq_u8_s8(LoadBytes(from + 64 * quad));
        low[quad] = vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15)));
        high[quad] = vreinterpretq_s8_u8(vshrq_n_u8(v, 4));
      }
      StorePairs(low, to);
      StorePairs(high, to + 256);
    }
  }
};

template <int G>
struct UnpackedI8 : UnpackedPairs<G> {
  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    for (int part = 0; part < G / kActGroup; ++part, from += 256) {
      for (int i = 0; i < 4; ++i, to += 64) {
        int8x16_t w[4];
#pragma GCC unroll 4
        for (int quad = 0; quad < 4; ++quad) w[quad] = LoadBytes(from + 64 * quad + 16 * i);
        StorePairs(w, to);
      }
    }
  }
};
