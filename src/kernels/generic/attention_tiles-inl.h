// The two register tiles of attention over the vocabulary (generic/vocabulary.md): scores of rows
// against groups of 16 positions, and rows of outputs over vectors of 16 head dimensions. A
// fragment: included after an isa/*/vec-inl.h, inside its namespace. E is the codec's element,
// float or uint16_t (bf16). Every accumulator is one chain of the definition in attention.h, so a
// tile's shape changes speed and never bits.

// How many vectors beside each other keep the accumulators of `rows` rows in registers.
constexpr int VectorsAcross(int rows) {
  return rows * 4 <= kAccumulators ? 4 : (rows * 2 <= kAccumulators ? 2 : 1);
}

// Two ways to run a step of a tile, so that no accumulator spills (its chain would run through
// memory): many rows are broadcast one after the other against one vector; few rows stay in
// registers against several vectors.
template <int R, int kStride>
LOCKSTEP_VEC void AccumulateBroadcasts(const float* rows, V v, V (&sum)[R]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) Accumulate(Set1(rows[r * kStride]), v, &sum[r]);
}

// scores[r * kScoreStride + 16 * g + lane] of R rows, G groups; q is [head_dim][R], a group of keys
// [head_dim][16].
template <int R, int G, class E>
LOCKSTEP_VEC void ScoreTile(const float* q, const E* const* keys, int32_t head_dim, float* scores) {
  V sum[G][R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) sum[g][r] = Zero();
  }
  const E* key[G];
#pragma GCC unroll 4
  for (int g = 0; g < G; ++g) key[g] = keys[g];
  for (int32_t d = 0; d < head_dim; ++d) {
    if constexpr (G == 1) {
      AccumulateBroadcasts<R, 1>(q + d * R, Load(key[0] + 16 * d), sum[0]);
    } else {
      V rows[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) rows[r] = Set1(q[d * R + r]);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) AccumulateRows(key[g] + 16 * d, rows, sum[g]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) Store(scores + r * kScoreStride + 16 * g, sum[g][r]);
  }
}

template <int R, class E>
void ScoreRows(const float* q, const E* const* keys, int32_t groups, int32_t head_dim,
               float* scores) {
  constexpr int kAcross = VectorsAcross(R);
  int32_t g = 0;
  for (; g + kAcross <= groups; g += kAcross) {
    ScoreTile<R, kAcross>(q, keys + g, head_dim, scores + 16 * g);
  }
  if constexpr (kAcross > 1) {
    for (; g < groups; ++g) ScoreTile<R, 1>(q, keys + g, head_dim, scores + 16 * g);
  }
}

template <class E>
void ScoreRows(int32_t rows, const float* q, const E* const* keys, int32_t groups, int32_t head_dim,
               float* scores) {
  static_assert(kTileRows == 6);
  switch (rows) {
    case 1:
      return ScoreRows<1>(q, keys, groups, head_dim, scores);
    case 2:
      return ScoreRows<2>(q, keys, groups, head_dim, scores);
    case 3:
      return ScoreRows<3>(q, keys, groups, head_dim, scores);
    case 4:
      return ScoreRows<4>(q, keys, groups, head_dim, scores);
    case 5:
      return ScoreRows<5>(q, keys, groups, head_dim, scores);
    default:
      return ScoreRows<6>(q, keys, groups, head_dim, scores);
  }
}

// Where the values of consecutive positions are, and the outputs that they are added to.
template <class E>
struct ValueSpan {
  const float* p;  // p[r * kScoreStride + t]
  const E* values;
  int64_t stride;  // elements from a position to the next
  int32_t positions;
  int32_t head_dim;
  float* out;  // out[r * out_stride + d]
  int64_t out_stride;
};

// Continues the chains of R rows and J vectors from dimension d on; kHalf: of eight lanes (J = 1).
template <int R, int J, bool kHalf, class E>
LOCKSTEP_VEC void ValueTile(const ValueSpan<E>& span, int32_t d) {
  float* out = span.out + d;
  const int64_t out_stride = span.out_stride, stride = span.stride;
  V sum[J][R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) sum[j][r] = Load(out + r * out_stride + 16 * j);
  }
  const E* value = span.values + d;
  const float* p = span.p;
  for (int32_t t = 0; t < span.positions; ++t, value += stride, ++p) {
    if constexpr (J == 1) {
      const V v = kHalf ? LoadHalf(value) : Load(value);
      AccumulateBroadcasts<R, kScoreStride>(p, v, sum[0]);
    } else {
      V rows[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) rows[r] = Set1(p[r * kScoreStride]);
#pragma GCC unroll 4
      for (int j = 0; j < J; ++j) AccumulateRows(value + 16 * j, rows, sum[j]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) Store(out + r * out_stride + 16 * j, sum[j][r]);
  }
}

template <int R, class E>
void ValueRows(const ValueSpan<E>& span) {
  constexpr int kAcross = VectorsAcross(R);
  int32_t d = 0;
  for (; d + 16 * kAcross <= span.head_dim; d += 16 * kAcross) {
    ValueTile<R, kAcross, false>(span, d);
  }
  if constexpr (kAcross > 1) {
    for (; d + 16 <= span.head_dim; d += 16) ValueTile<R, 1, false>(span, d);
  }
  if (d < span.head_dim) ValueTile<R, 1, true>(span, d);
}

template <class E>
void ValueRows(int32_t rows, const ValueSpan<E>& span) {
  static_assert(kTileRows == 6);
  switch (rows) {
    case 1:
      return ValueRows<1>(span);
    case 2:
      return ValueRows<2>(span);
    case 3:
      return ValueRows<3>(span);
    case 4:
      return ValueRows<4>(span);
    case 5:
      return ValueRows<5>(span);
    default:
      return ValueRows<6>(span);
  }
}
