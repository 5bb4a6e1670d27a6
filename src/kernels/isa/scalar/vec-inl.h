// The vocabulary of 16 virtual lanes in plain C++: an array of 16 floats. The words and their exact
// meaning are in generic/vocabulary.md; every instruction set spells the same ones.
//
// A fragment: included inside the namespace of the instruction set, after <bit>, <cstdint> and
// generic/inline.h.

constexpr int kAccumulators = 4;

struct V {
  float lane[16];
};
struct M {
  uint32_t bits;
};

// a * b + c, rounded once. The product is exact in double; the sum is rounded to odd (Boldo and
// Melquiond, "Emulation of a FMA and correctly rounded sums"), so that the rounding to f32 is that
// of the exact value. The C library's fmaf on a CPU without FMA changes the rounding mode and is
// some ten times slower.
LOCKSTEP_VEC float FmaLane(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  const double sum = product + addend;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (addend - back);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  // A NaN error (an infinite or NaN sum) compares false both ways and leaves the sum.
  const bool inexact = error < 0.0 || error > 0.0;
  const bool away = (error < 0.0) != (sum < 0.0);  // the exact value is nearer to zero than the sum
  const uint64_t even = ~bits & 1u;
  const uint64_t step = away ? ~uint64_t{0} : uint64_t{1};
  bits += inexact ? even * step : 0u;
  return static_cast<float>(std::bit_cast<double>(bits));
}

#define LOCKSTEP_LANES(expression)                            \
  V result;                                                   \
  for (int i = 0; i < 16; ++i) result.lane[i] = (expression); \
  return result

LOCKSTEP_VEC V Zero() { LOCKSTEP_LANES(0.0f); }
LOCKSTEP_VEC V Set1(float x) { LOCKSTEP_LANES(x); }

// The first n lanes; n <= 0 none, n >= 16 all.
LOCKSTEP_VEC M FirstN(int n) {
  const int count = n < 0 ? 0 : (n > 16 ? 16 : n);
  return {(1u << count) - 1u};
}

LOCKSTEP_VEC V Load(const float* p) { LOCKSTEP_LANES(p[i]); }
LOCKSTEP_VEC V LoadN(const float* p, int n) { LOCKSTEP_LANES(i < n ? p[i] : 0.0f); }
LOCKSTEP_VEC V LoadHalf(const float* p) { return LoadN(p, 8); }
LOCKSTEP_VEC void StoreN(float* p, V v, int n) {
  for (int i = 0; i < n; ++i) p[i] = v.lane[i];
}
LOCKSTEP_VEC void Store(float* p, V v) { StoreN(p, v, 16); }
LOCKSTEP_VEC void StoreHalf(float* p, V v) { StoreN(p, v, 8); }

LOCKSTEP_VEC float WidenBf16(uint16_t x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}
LOCKSTEP_VEC V Load(const uint16_t* p) { LOCKSTEP_LANES(WidenBf16(p[i])); }
LOCKSTEP_VEC V LoadHalf(const uint16_t* p) { LOCKSTEP_LANES(i < 8 ? WidenBf16(p[i]) : 0.0f); }

LOCKSTEP_VEC uint16_t NarrowBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t high = bits >> 16;
  const uint32_t rounded = (bits + 0x7fffu + (high & 1u)) >> 16;
  return static_cast<uint16_t>(x != x ? high | 0x40u : rounded);
}
LOCKSTEP_VEC void Store(uint16_t* p, V v) {
  for (int i = 0; i < 16; ++i) p[i] = NarrowBf16(v.lane[i]);
}
LOCKSTEP_VEC void StoreHalf(uint16_t* p, V v) {
  for (int i = 0; i < 8; ++i) p[i] = NarrowBf16(v.lane[i]);
}

LOCKSTEP_VEC V Add(V a, V b) { LOCKSTEP_LANES(a.lane[i] + b.lane[i]); }
LOCKSTEP_VEC V Sub(V a, V b) { LOCKSTEP_LANES(a.lane[i] - b.lane[i]); }
LOCKSTEP_VEC V Mul(V a, V b) { LOCKSTEP_LANES(a.lane[i] * b.lane[i]); }
LOCKSTEP_VEC V Div(V a, V b) { LOCKSTEP_LANES(a.lane[i] / b.lane[i]); }
LOCKSTEP_VEC V Fma(V a, V b, V c) { LOCKSTEP_LANES(FmaLane(a.lane[i], b.lane[i], c.lane[i])); }
LOCKSTEP_VEC void Accumulate(V a, V b, V* sum) { *sum = Fma(a, b, *sum); }
template <int R, class E>
LOCKSTEP_VEC void AccumulateRows(const E* p, const V (&rows)[R], V (&sum)[R]) {
  const V v = Load(p);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) Accumulate(rows[r], v, &sum[r]);
}
LOCKSTEP_VEC V NegFma(V a, V b, V c) { LOCKSTEP_LANES(FmaLane(-a.lane[i], b.lane[i], c.lane[i])); }
LOCKSTEP_VEC V Max(V a, V b) { LOCKSTEP_LANES(a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]); }
LOCKSTEP_VEC V Min(V a, V b) { LOCKSTEP_LANES(a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]); }

LOCKSTEP_VEC V ExponentFromLowBits(V v) {
  LOCKSTEP_LANES(
      std::bit_cast<float>((std::bit_cast<uint32_t>(v.lane[i]) << 23) + (uint32_t{126} << 23)));
}

LOCKSTEP_VEC M IsNan(V a) {
  M m{0};
  for (int i = 0; i < 16; ++i) m.bits |= static_cast<uint32_t>(a.lane[i] != a.lane[i]) << i;
  return m;
}
LOCKSTEP_VEC M Equal(V a, V b) {
  M m{0};
  for (int i = 0; i < 16; ++i) m.bits |= static_cast<uint32_t>(a.lane[i] == b.lane[i]) << i;
  return m;
}
LOCKSTEP_VEC M Or(M a, M b) { return {a.bits | b.bits}; }
LOCKSTEP_VEC M NoLanes() { return {0}; }
LOCKSTEP_VEC uint32_t Bits(M m) { return m.bits; }
LOCKSTEP_VEC V Select(M m, V yes, V no) {
  LOCKSTEP_LANES(((m.bits >> i) & 1u) != 0 ? yes.lane[i] : no.lane[i]);
}

// The tree of generic/vocabulary.md: i with i + 8, i + 4, i + 2, i + 1.
LOCKSTEP_VEC float ReduceAdd(V v) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) v.lane[i] = v.lane[i] + v.lane[i + width];
  }
  return v.lane[0];
}
LOCKSTEP_VEC float ReduceMax(V v) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      v.lane[i] = v.lane[i] > v.lane[i + width] ? v.lane[i] : v.lane[i + width];
    }
  }
  return v.lane[0];
}

#undef LOCKSTEP_LANES
