// Dots on packed codes with dotprod: sdot multiplies signed bytes by signed bytes, so every code is
// taken as it is (an unsigned 4-bit one is a small signed byte).
//
// A fragment: included after gemm_words-inl.h.

// An activation group of every row.
template <int R>
LOCKSTEP_VEC void LoadCodes(const int8_t* codes, int64_t stride, int8x16_t (&rows)[R]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) rows[r] = vld1q_s8(codes + r * stride);
}

// Outputs 4 i to 4 i + 3 by one k-quad.
template <int R, int kQuad>
LOCKSTEP_VEC void QuadOfFour(int8x16_t w, int i, const int8x16_t (&rows)[R], I (&sum)[R]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const int32x4_t from = kQuad == 0 ? vdupq_n_s32(0) : sum[r].q[i];
    sum[r].q[i] = vdotq_laneq_s32(from, w, rows[r], kQuad);
    asm("" : "+w"(sum[r].q[i]));  // in this order, or weights of all quads wait in registers
  }
}

struct PackedU4 {
  static constexpr int kGroup = 32;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = true;
  static constexpr bool kUnpacked = false;
  using Code = int8_t;

  // The codes of part 0 are the low halves of the bytes, those of part 1 the high ones.
  template <int R, int kPart, int kQuad>
  [[gnu::always_inline]] static inline void Quad(const std::byte* group, const int8x16_t (&rows)[R],
                                                 I (&sum)[R]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const uint8x16_t v = vreinterpretq_u8_s8(LoadBytes(group + 64 * kQuad + 16 * i));
      const uint8x16_t w = kPart == 0 ? vandq_u8(v, vdupq_n_u8(15)) : vshrq_n_u8(v, 4);
      QuadOfFour<R, kQuad>(vreinterpretq_s8_u8(w), i, rows, sum);
    }
  }
  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    int8x16_t rows[R];
    LoadCodes<R>(codes, stride, rows);
    Quad<R, kPart, 0>(group, rows, sum);
    Quad<R, kPart, 1>(group, rows, sum);
    Quad<R, kPart, 2>(group, rows, sum);
    Quad<R, kPart, 3>(group, rows, sum);
  }
};

// Signed bytes, k-quad by k-quad: 8-bit codes as they are packed, and others unpacked.
template <int G>
struct Bytes {
  static constexpr int kGroup = G;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = false;
  static constexpr size_t kCodeBytes = size_t{16} * G;
  using Code = int8_t;

  template <int R, int kQuad>
  [[gnu::always_inline]] static inline void Quad(const std::byte* group, const int8x16_t (&rows)[R],
                                                 I (&sum)[R]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      QuadOfFour<R, kQuad>(LoadBytes(group + 64 * kQuad + 16 * i), i, rows, sum);
    }
  }
  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    group += 256 * kPart;
    int8x16_t rows[R];
    LoadCodes<R>(codes, stride, rows);
    Quad<R, 0>(group, rows, sum);
    Quad<R, 1>(group, rows, sum);
    Quad<R, 2>(group, rows, sum);
    Quad<R, 3>(group, rows, sum);
  }
};

template <int G>
struct PackedI8 : Bytes<G> {
  static constexpr bool kUnpacked = false;
};
