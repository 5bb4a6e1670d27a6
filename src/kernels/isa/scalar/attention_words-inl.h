// The words of attention in plain C++: the encoded elements of a cache. Their meaning is in
// generic/attention_words.md. A fragment: included after attention_elements-inl.h and vec-inl.h;
// base/half.h before the namespace.

constexpr bool kFetches = false;

LOCKSTEP_VEC V Load(const Bf16* p) {
  V v;
  for (int i = 0; i < 16; ++i) v.lane[i] = WidenBf16(p[i % 8 * 2 + i / 8].bits);
  return v;
}
LOCKSTEP_VEC V LoadHalf(const Bf16* p) { return LoadHalf(&p->bits); }
LOCKSTEP_VEC void Store(Bf16* p, V v) {
  for (int i = 0; i < 16; ++i) p[i % 8 * 2 + i / 8].bits = NarrowBf16(v.lane[i]);
}
LOCKSTEP_VEC void StoreHalf(Bf16* p, V v) { StoreHalf(&p->bits, v); }

LOCKSTEP_VEC V Load(const F16* p) {
  V v;
  for (int i = 0; i < 16; ++i) v.lane[i] = F16ToF32(p[i].bits);
  return v;
}
LOCKSTEP_VEC V LoadHalf(const F16* p) {
  V v;
  for (int i = 0; i < 16; ++i) v.lane[i] = i < 8 ? F16ToF32(p[i].bits) : 0.0f;
  return v;
}
LOCKSTEP_VEC void Store(F16* p, V v) {
  for (int i = 0; i < 16; ++i) p[i].bits = F32ToF16(v.lane[i]);
}
LOCKSTEP_VEC void StoreHalf(F16* p, V v) {
  for (int i = 0; i < 8; ++i) p[i].bits = F32ToF16(v.lane[i]);
}

LOCKSTEP_VEC void AccumulateBroadcast(const float* p, V v, V* sum) { Accumulate(Set1(*p), v, sum); }

LOCKSTEP_VEC V LoadU8(const uint8_t* p) {
  V v;
  for (int i = 0; i < 16; ++i) v.lane[i] = static_cast<float>(p[i]);
  return v;
}
LOCKSTEP_VEC void LoadU4(const uint8_t* p, V* low, V* high) {
  for (int i = 0; i < 16; ++i) {
    low->lane[i] = static_cast<float>(p[i] & 15);
    high->lane[i] = static_cast<float>(p[i] >> 4);
  }
}

LOCKSTEP_VEC V PowerFromLowBits(V v) {
  V power;
  for (int i = 0; i < 16; ++i) {
    power.lane[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(v.lane[i]) << 23);
  }
  return power;
}
