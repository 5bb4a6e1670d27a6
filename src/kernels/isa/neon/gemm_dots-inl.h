// Dots on unpacked codes with dotprod: as on packed ones of 8 bits.
//
// A fragment: included after gemm_packed_dots-inl.h.

struct UnpackedU4 : Bytes<32> {
  static constexpr bool kHasZero = true;
  static constexpr bool kUnpacked = true;

  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    for (int i = 0; i < 256; i += 16) {
      const uint8x16_t v = vreinterpretq_u8_s8(LoadBytes(from + i));
      StoreBytes(to + i, vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15))));
      StoreBytes(to + 256 + i, vreinterpretq_s8_u8(vshrq_n_u8(v, 4)));
    }
  }
};

template <int G>
struct UnpackedI8 : Bytes<G> {
  static constexpr bool kUnpacked = true;

  [[gnu::always_inline]] static inline void Unpack(const std::byte* from, std::byte* to) {
    std::memcpy(to, from, 16 * G);
  }
};
