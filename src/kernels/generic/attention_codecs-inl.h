// What the cache holds, to f32 and back: the layouts of attention.h. A fragment: included after
// attention_softmax-inl.h, inside the namespace of an instruction set.
//
// E is the element of a codec: float or Bf16, which tiles may read where they lie; or F16, Q8 or
// Q4, which are widened to f32 first, half a block at a time.

struct Q8 {};
struct Q4 {};
template <class E>
inline constexpr bool kAffine = false;
template <>
inline constexpr bool kAffine<Q8> = true;
template <>
inline constexpr bool kAffine<Q4> = true;
template <class E>
inline constexpr bool kDirect = false;
template <>
inline constexpr bool kDirect<float> = true;
template <>
inline constexpr bool kDirect<Bf16> = kFetches;
template <class E>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<float> = true;
template <class E>
inline constexpr bool kPaired = false;
template <>
inline constexpr bool kPaired<Bf16> = true;

constexpr int32_t kHalf = 16;  // positions of half a block

// One KV head of a sequence.
struct Cache {
  const KvLayer& layer;
  const int32_t* table;
  int64_t half_bytes;   // of the keys, or the values, of half a block
  int64_t head_offset;  // of this head in a block

  LOCKSTEP_VEC Cache(const KvLayer& l, const int32_t* t, int32_t kv_head)
      : layer(l),
        table(t),
        half_bytes(KvBlockBytes(1, l.head_dim, l.scheme) / 4),
        head_offset(kv_head * half_bytes * (l.latent_dim > 0 ? 2 : 4)) {}

  // Of the half block that holds `position`.
  LOCKSTEP_VEC std::byte* Keys(int32_t position) const {
    const int64_t block = table[position / kBlockTokens];
    return layer.data + block * layer.block_stride + head_offset +
           position % kBlockTokens / kHalf * half_bytes;
  }
  LOCKSTEP_VEC std::byte* Values(int32_t position) const {
    return Keys(position) + (layer.latent_dim > 0 ? 0 : 2 * half_bytes);
  }
};

constexpr int64_t kLine = 64;  // bytes of a cache line

// The hardware does not follow from block to block: who reads `bytes` at `from` fetches the same
// of the block that comes next.
LOCKSTEP_VEC void FetchNext(const std::byte* from, int64_t to_next, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(from + to_next + at);
}

// An affine group: 16 scales, 16 biases, and the codes of 16 positions.
template <class E>
constexpr int64_t kCodeBits = 8;
template <>
constexpr int64_t kCodeBits<Q4> = 4;
template <class E>
LOCKSTEP_VEC int64_t GroupBytes(int32_t group) {
  return 2 * kHalf * 2 + kHalf * group * kCodeBits<E> / 8;
}

// Sixteens of codes, from the i-th on: one for q8, two for q4.
template <class E>
constexpr int32_t kSixteens = 1;
template <>
constexpr int32_t kSixteens<Q4> = 2;
LOCKSTEP_VEC void LoadCodes(const uint8_t* codes, int32_t i, V (&to)[1]) {
  to[0] = LoadU8(codes + 16 * i);
}
LOCKSTEP_VEC void LoadCodes(const uint8_t* codes, int32_t i, V (&to)[2]) {
  LoadU4(codes + 8 * i, to, to + 1);
}

// Keys of half a block as [head_dim][16] f32.
template <class E>
void WidenKeys(const KvLayer& layer, const std::byte* from, int64_t to_next, float* to) {
  if constexpr (kAffine<E>) {
    const int32_t group = layer.scheme.group;
    for (int32_t d = 0; d < layer.head_dim; d += group, from += GroupBytes<E>(group)) {
      FetchNext(from, to_next, GroupBytes<E>(group));
      const auto* params = reinterpret_cast<const F16*>(from);
      const auto* codes = reinterpret_cast<const uint8_t*>(params + 2 * kHalf);
      const V scale = Load(params), bias = Load(params + kHalf);
      for (int32_t i = 0; i < group; i += kSixteens<E>) {
        V code[kSixteens<E>];
        LoadCodes(codes, i, code);
        for (int32_t j = 0; j < kSixteens<E>; ++j, to += 16) Store(to, Fma(code[j], scale, bias));
      }
    }
  } else {
    const E* elements = reinterpret_cast<const E*>(from);
    for (int64_t i = 0; i < layer.head_dim; ++i) {
      __builtin_prefetch(from + to_next + i * 16 * sizeof(E));
      Store(to + 16 * i, Load(elements + 16 * i));
    }
  }
}

// The first `count` values of half a block as f32, `stride` apart.
template <class E>
void WidenValues(const KvLayer& layer, const std::byte* from, int64_t to_next, int32_t count,
                 float* to, int64_t stride) {
  const int32_t head_dim = layer.head_dim;
  if constexpr (kAffine<E>) {
    const int32_t group = layer.scheme.group;
    for (int32_t d = 0; d < head_dim; d += group, from += GroupBytes<E>(group)) {
      FetchNext(from, to_next, GroupBytes<E>(group));
      const auto* params = reinterpret_cast<const F16*>(from);
      const auto* codes = reinterpret_cast<const uint8_t*>(params + 2 * kHalf);
      float scales[kHalf], biases[kHalf];
      Store(scales, Load(params));
      Store(biases, Load(params + kHalf));
      for (int32_t t = 0; t < count; ++t) {
        const V scale = Set1(scales[t]), bias = Set1(biases[t]);
        float* row = to + t * stride + d;
        for (int32_t i = 0; i < group / 16; i += kSixteens<E>) {
          V code[kSixteens<E>];
          LoadCodes(codes, t * (group / 16) + i, code);
          for (int32_t j = 0; j < kSixteens<E>; ++j) {
            Store(row + 16 * (i + j), Fma(code[j], scale, bias));
          }
        }
      }
    }
  } else {
    for (int32_t t = 0; t < count; ++t, to += stride) {
      const E* row = reinterpret_cast<const E*>(from) + int64_t{t} * head_dim;
      int32_t d = 0;
      for (; d + 16 <= head_dim; d += 16) {
        __builtin_prefetch(reinterpret_cast<const std::byte*>(row + d) + to_next);
        Store(to + d, Load(row + d));
      }
      if (d < head_dim) StoreHalf(to + d, LoadHalf(row + d));
    }
  }
}

// Sixteen dimensions of 16 positions as f32, [d][position], to the first `count` positions.
LOCKSTEP_VEC void TurnSixteen(const float* from, int32_t dims, int32_t count, float* to,
                              int64_t stride) {
  for (int32_t t = 0; t < count; ++t) {
    for (int32_t d = 0; d < dims; ++d) to[t * stride + d] = from[16 * d + t];
  }
}

// The same of a latent layer, whose values are the first elements of the keys and stand as they do.
template <class E>
void WidenLatents(const KvLayer& layer, const std::byte* from, int64_t to_next, int32_t count,
                  float* to, int64_t stride) {
  alignas(64) float part[64 * 16];
  if constexpr (kAffine<E>) {
    const int32_t group = layer.scheme.group;
    KvLayer one = layer;
    one.head_dim = group;
    for (int32_t d = 0; d < layer.latent_dim; d += group, from += GroupBytes<E>(group)) {
      WidenKeys<E>(one, from, to_next, part);
      TurnSixteen(part, Smaller(group, layer.latent_dim - d), count, to + d, stride);
    }
  } else {
    const E* elements = reinterpret_cast<const E*>(from);
    for (int32_t d = 0; d < layer.latent_dim; d += 16) {
      const int32_t dims = Smaller(16, layer.latent_dim - d);
      for (int32_t i = 0; i < dims; ++i) {
        __builtin_prefetch(from + to_next + (d + i) * 16 * sizeof(E));
        Store(part + 16 * i, Load(elements + (d + i) * 16));
      }
      TurnSixteen(part, dims, count, to + d, stride);
    }
  }
}

// A group's scale and bias as stored, and its codes.
struct EncodedGroup {
  F16 scale, bias;
  uint8_t codes[64];
};

LOCKSTEP_VEC float WidenF16(F16 x) {
  const F16 eight[8] = {x, x, x, x, x, x, x, x};
  float lanes[8];
  StoreHalf(lanes, LoadHalf(eight));
  return lanes[0];
}
LOCKSTEP_VEC F16 NarrowF16(float x) {
  F16 eight[8];
  StoreHalf(eight, Set1(x));
  return eight[0];
}
// The f16 at or next to x on the side of -infinity, or of +infinity.
LOCKSTEP_VEC F16 F16AtMost(float x) {
  F16 half = NarrowF16(x);
  if (WidenF16(half) > x) {
    half.bits = half.bits == 0 ? 0x8001 : half.bits + ((half.bits & 0x8000) != 0 ? 1 : -1);
  }
  return half;
}
LOCKSTEP_VEC F16 F16AtLeast(float x) {
  F16 half = F16AtMost(-x);
  half.bits ^= 0x8000;
  return half;
}

void EncodeGroup(const float* x, int32_t n, float greatest_code, EncodedGroup* to) {
  V high = Load(x), negated_low = Sub(Zero(), high);
  M nan = IsNan(high);
  for (int32_t i = 16; i < n; i += 16) {
    const V v = Load(x + i);
    high = Max(high, v);
    negated_low = Max(negated_low, Sub(Zero(), v));
    nan = Or(nan, IsNan(v));
  }
  if (Bits(nan) != 0) {
    to->scale.bits = to->bias.bits = 0x7e00;
    __builtin_memset(to->codes, 0, sizeof(to->codes));
    return;
  }
  to->bias = F16AtMost(-ReduceMax(negated_low));
  const float bias = WidenF16(to->bias);
  to->scale = F16AtLeast((ReduceMax(high) - bias) / greatest_code);
  const float scale = WidenF16(to->scale);
  const V inverse = Set1(scale > 0.0f ? 1.0f / scale : 0.0f);
  for (int32_t i = 0; i < n; i += 16) {
    // Adding it leaves the nearest integer in the low bits.
    const V code = Min(Set1(greatest_code), Mul(Sub(Load(x + i), Set1(bias)), inverse));
    float shifted[16];
    Store(shifted, Add(Max(Zero(), code), Set1(kRoundToInteger)));
    for (int32_t j = 0; j < 16; ++j) {
      uint32_t bits;
      __builtin_memcpy(&bits, &shifted[j], sizeof(bits));
      to->codes[i + j] = static_cast<uint8_t>(bits);
    }
  }
}

// Returns where the codes begin.
LOCKSTEP_VEC uint8_t* WriteParams(const EncodedGroup& group, int32_t at, std::byte* to) {
  auto* params = reinterpret_cast<F16*>(to);
  params[at] = group.scale;
  params[kHalf + at] = group.bias;
  return reinterpret_cast<uint8_t*>(params + 2 * kHalf);
}

template <class E>
void AppendAffine(const Cache& cache, int32_t position, const float* k, const float* v) {
  const int32_t group = cache.layer.scheme.group, at = position % kHalf;
  std::byte *keys = cache.Keys(position), *values = cache.Values(position);
  EncodedGroup encoded;
  for (int32_t d = 0; d < cache.layer.head_dim; d += group) {
    constexpr float kGreatestCode = kCodeBits<E> == 8 ? 255.0f : 15.0f;
    EncodeGroup(k + d, group, kGreatestCode, &encoded);
    uint8_t* codes = WriteParams(encoded, at, keys);
    for (int32_t i = 0; i < group; i += kSixteens<E>) {
      uint8_t code = encoded.codes[i];
      if (kSixteens<E> == 2) code |= static_cast<uint8_t>(encoded.codes[i + 1] << 4);
      codes[i / kSixteens<E> * 16 + at] = code;
    }
    keys += GroupBytes<E>(group);
    if (cache.layer.latent_dim > 0) continue;
    EncodeGroup(v + d, group, kGreatestCode, &encoded);
    codes = WriteParams(encoded, at, values) + at * group / kSixteens<E>;
    for (int32_t i = 0; i < group; i += 16 * kSixteens<E>) {
      for (int32_t j = 0; j < 16; ++j, ++codes) {
        uint8_t code = encoded.codes[i + j];
        if (kSixteens<E> == 2) code |= static_cast<uint8_t>(encoded.codes[i + 16 + j] << 4);
        *codes = code;
      }
    }
    values += GroupBytes<E>(group);
  }
}

template <class E>
void AppendFloats(const Cache& cache, int32_t position, const float* k, const float* v) {
  const int32_t head_dim = cache.layer.head_dim, at = position % kHalf;
  // Where sixteen stored by Store have the element of lane `at`.
  const int32_t slot = kPaired<E> ? at % 8 * 2 + at / 8 : at;
  E* keys = reinterpret_cast<E*>(cache.Keys(position)) + slot;
  E* values = reinterpret_cast<E*>(cache.Values(position)) + int64_t{at} * head_dim;
  for (int32_t d = 0; d < head_dim; d += 16) {
    // Eight alone are in order, and so is each eighth of a key.
    E encoded[16];
    const int32_t count = Smaller(16, head_dim - d);
    StoreHalf(encoded, LoadHalf(k + d));
    if (count == 16) StoreHalf(encoded + 8, LoadHalf(k + d + 8));
    for (int32_t i = 0; i < count; ++i) keys[(d + i) * 16] = encoded[i];
    if (cache.layer.latent_dim > 0) continue;
    if (count == 16) {
      Store(values + d, Load(v + d));
    } else {
      StoreHalf(values + d, LoadHalf(v + d));
    }
  }
}
