// Dots in plain C++.
//
// A fragment: included after gemm_words-inl.h.

// 16 outputs by one k-quad.
template <class T>
LOCKSTEP_VEC void Quad(const T* w, const int8_t* codes, I& sum) {
  for (int j = 0; j < 16; ++j) {
    for (int i = 0; i < 4; ++i) sum.lane[j] += int32_t{w[4 * j + i]} * codes[i];
  }
}

template <class T, int G>
struct Bytes {
  static constexpr int kGroup = G;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = false;
  static constexpr size_t kCodeBytes = size_t{16} * G;
  static constexpr bool kUnpacked = true;
  using Code = int8_t;

  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    for (int r = 0; r < R; ++r) {
      sum[r] = SetI(0);
      for (int quad = 0; quad < 4; ++quad) {
        Quad(reinterpret_cast<const T*>(group) + 256 * kPart + 64 * quad,
             codes + r * stride + 4 * quad, sum[r]);
      }
    }
  }
};

struct UnpackedU4 : Bytes<uint8_t, 32> {
  static constexpr bool kHasZero = true;

  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    for (int i = 0; i < 256; ++i) {
      to[i] = from[i] & std::byte{15};
      to[256 + i] = from[i] >> 4;
    }
  }
};

struct PackedU4 {
  static constexpr int kGroup = 32;
  static constexpr int kBias = 0;
  static constexpr bool kHasZero = true;
  static constexpr bool kUnpacked = false;
  using Code = int8_t;

  template <int R, int kPart>
  [[gnu::always_inline]] static inline void Run(const std::byte* group, const int8_t* codes,
                                                int64_t stride, I (&sum)[R]) {
    std::byte unpacked[UnpackedU4::kCodeBytes];
    UnpackedU4::Unpack(group, unpacked);
    UnpackedU4::Run<R, kPart>(unpacked, codes, stride, sum);
  }
};

template <int G>
struct PackedI8 : Bytes<int8_t, G> {
  static constexpr bool kUnpacked = false;
};

template <int G>
struct UnpackedI8 : Bytes<int8_t, G> {
  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    std::memcpy(to, from, 16 * G);
  }
};
