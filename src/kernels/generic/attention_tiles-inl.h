// The two register tiles of attention over the vocabulary (generic/vocabulary.md): scores of rows
// against groups of 16 positions, and rows of outputs over vectors of 16 head dimensions. A
// fragment: included after attention_codecs-inl.h, inside the namespace of an instruction set. E is
// the element that is read, float or Bf16. Every accumulator is one chain of the definition in
// attention.h, so a tile's shape changes speed and never bits.
//
// kFetch: what is read comes from the cache itself, so the same of what is read next is fetched
// ahead; widened blocks, and blocks that many tiles share, are near already.

// How many vectors beside each other keep the accumulators of `rows` rows in registers.
constexpr int VectorsAcross(int rows) {
  return rows * 4 <= kAccumulators ? 4 : (rows * 2 <= kAccumulators ? 2 : 1);
}

// One vector of a tile against its rows, which are broadcast one after the other, for every vector
// anew: held in registers they would leave too few, and an accumulator that spills runs its chain
// through memory.
template <int R, int kStride>
LOCKSTEP_VEC void AccumulateBroadcasts(const float* rows, V v, V (&sum)[R]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) AccumulateBroadcast(rows + r * kStride, v, &sum[r]);
}

// scores[r * kScoreStride + 16 * g + lane] of R rows, G halves of blocks; q is [head_dim][R], keys
// [head_dim][16]. kFetch: halves[G .. 2 * G) come next.
template <int R, int G, bool kFetch, class E>
LOCKSTEP_VEC void ScoreTile(const float* q, const std::byte* const* halves, int32_t head_dim,
                            float* scores) {
  V sum[G][R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) sum[g][r] = Zero();
  }
  const E* keys[G];
#pragma GCC unroll 4
  for (int g = 0; g < G; ++g) keys[g] = reinterpret_cast<const E*>(halves[g]);
  constexpr int32_t kStep = kFetch ? kLine / (16 * sizeof(E)) : 1;  // d's of a line
  for (int32_t d = 0; d < head_dim; d += kStep) {
    if constexpr (kFetch) {
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) __builtin_prefetch(halves[G + g] + 16 * d * sizeof(E));
    }
#pragma GCC unroll 2
    for (int32_t i = 0; i < kStep; ++i) {
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        AccumulateBroadcasts<R, 1>(q + (d + i) * R, Load(keys[g] + 16 * (d + i)), sum[g]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) Store(scores + r * kScoreStride + 16 * g, sum[g][r]);
  }
}

// kFetch: as many entries as may come next follow the last of `halves`.
template <int R, bool kFetch, class E>
void ScoreRows(const float* q, const std::byte* const* halves, int32_t count, int32_t head_dim,
               float* scores) {
  constexpr int kAcross = VectorsAcross(R);
  int32_t g = 0;
  for (; g + kAcross <= count; g += kAcross) {
    ScoreTile<R, kAcross, kFetch, E>(q, halves + g, head_dim, scores + 16 * g);
  }
  if constexpr (kAcross > 1) {
    for (; g < count; ++g) {
      ScoreTile<R, 1, kFetch, E>(q, halves + g, head_dim, scores + 16 * g);
    }
  }
}

template <bool kFetch, class E>
void ScoreRows(int32_t rows, const float* q, const std::byte* const* halves, int32_t count,
               int32_t head_dim, float* scores) {
  static_assert(kTileRows == 6);
  switch (rows) {
    case 1:
      return ScoreRows<1, kFetch, E>(q, halves, count, head_dim, scores);
    case 2:
      return ScoreRows<2, kFetch, E>(q, halves, count, head_dim, scores);
    case 3:
      return ScoreRows<3, kFetch, E>(q, halves, count, head_dim, scores);
    case 4:
      return ScoreRows<4, kFetch, E>(q, halves, count, head_dim, scores);
    case 5:
      return ScoreRows<5, kFetch, E>(q, halves, count, head_dim, scores);
    default:
      return ScoreRows<6, kFetch, E>(q, halves, count, head_dim, scores);
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
  int64_t to_next;  // bytes to the same place of what is read next
};

// Continues the chains of R rows and J vectors from dimension d on; kEight: of eight lanes (J = 1).
template <int R, int J, bool kEight, bool kFetch, class E>
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
    if constexpr (kFetch) {
      const auto* next = reinterpret_cast<const std::byte*>(value) + span.to_next;
#pragma GCC unroll 4
      for (int64_t i = 0; i < 16 * J * int64_t{sizeof(E)}; i += kLine) __builtin_prefetch(next + i);
    }
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const V v = kEight ? LoadHalf(value) : Load(value + 16 * j);
      AccumulateBroadcasts<R, kScoreStride>(p, v, sum[j]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) Store(out + r * out_stride + 16 * j, sum[j][r]);
  }
}

template <int R, bool kFetch, class E>
void ValueRows(const ValueSpan<E>& span) {
  constexpr int kAcross = VectorsAcross(R);
  int32_t d = 0;
  for (; d + 16 * kAcross <= span.head_dim; d += 16 * kAcross) {
    ValueTile<R, kAcross, false, kFetch>(span, d);
  }
  if constexpr (kAcross > 1) {
    for (; d + 16 <= span.head_dim; d += 16) ValueTile<R, 1, false, kFetch>(span, d);
  }
  if (d < span.head_dim) ValueTile<R, 1, true, kFetch>(span, d);
}

template <bool kFetch, class E>
void ValueRows(int32_t rows, const ValueSpan<E>& span) {
  static_assert(kTileRows == 6);
  switch (rows) {
    case 1:
      return ValueRows<1, kFetch>(span);
    case 2:
      return ValueRows<2, kFetch>(span);
    case 3:
      return ValueRows<3, kFetch>(span);
    case 4:
      return ValueRows<4, kFetch>(span);
    case 5:
      return ValueRows<5, kFetch>(span);
    default:
      return ValueRows<6, kFetch>(span);
  }
}

// Positions [begin, end) of a block for row r of a tile alone.
template <bool kFetch, class E>
void ValueRow(ValueSpan<E> span, const float* p, int32_t r, int32_t begin, int32_t end) {
  span.p = p + r * kScoreStride + begin;
  span.values += begin * span.stride;
  span.positions = end - begin;
  span.out += r * span.out_stride;
  ValueRows<1, kFetch>(span);
}
