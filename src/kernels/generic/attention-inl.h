// The kernels of attention.h over the vocabulary (generic/vocabulary.md). A fragment: included
// after math-inl.h and attention_tiles-inl.h, inside the namespace of an instruction set. E is the
// codec's element, float or uint16_t (bf16).
//
// Rows are worked on in batches of up to kBatchRows; for each split of the cache a batch computes
// all scores, then the softmax, then the outputs, and folds them. A batch of more than one tile
// widens each block once to f32. Positions beyond a row's own are cut off by its limit: their
// scores are never selected and their values never read for it.

template <class E>
struct Cache {
  const KvLayer& layer;
  const int32_t* table;
  int32_t kv_head;

  // Keys, then values, of this head in the block that holds `position`.
  const E* Keys(int32_t position) const {
    const int64_t block = table[position / kBlockTokens];
    const std::byte* data = layer.data + block * layer.block_stride;
    return reinterpret_cast<const E*>(data) + int64_t{2} * kv_head * kBlockTokens * layer.head_dim;
  }
  const E* Values(int32_t position) const {
    return Keys(position) + int64_t{kBlockTokens} * layer.head_dim;
  }
};

struct Batch {
  int32_t rows;
  int32_t tile;  // rows of every tile but the last
  int32_t position[kBatchRows];
  int32_t limit[kBatchRows];  // how many positions of the current split each row sees; ascending
  float* queries;
  float* scores;
  float* block;
  int64_t padded_dim;
};

LOCKSTEP_VEC int32_t Clamp(int32_t x, int32_t high) { return x < 0 ? 0 : (x > high ? high : x); }
LOCKSTEP_VEC int32_t Smaller(int32_t a, int32_t b) { return a < b ? a : b; }

void StartBatch(const AttentionQuery& query, int32_t head_dim, int32_t first_row, int32_t rows,
                Batch* batch) {
  constexpr float kLog2E = 0x1.715476p+0f;
  const float factor = query.scale * kLog2E;
  const int32_t tiles = (rows + kTileRows - 1) / kTileRows;
  batch->rows = rows;
  batch->tile = (rows + tiles - 1) / tiles;
  for (int32_t begin = 0; begin < rows; begin += batch->tile) {
    const int32_t count = Smaller(batch->tile, rows - begin);
    for (int32_t r = 0; r < count; ++r) {
      const int32_t token = (first_row + begin + r) / query.heads;
      const int32_t head = (first_row + begin + r) % query.heads;
      batch->position[begin + r] = query.first_position + token;
      const float* q = query.q + token * query.token_stride + int64_t{head} * head_dim;
      float* to = batch->queries + begin * batch->padded_dim + r;
      for (int32_t d = 0; d < head_dim; ++d) to[d * count] = q[d] * factor;
    }
  }
}

// Returns how many positions of the split its last row, and so any row, sees.
int32_t SetLimits(int32_t split, Batch* batch) {
  for (int32_t r = 0; r < batch->rows; ++r) {
    batch->limit[r] = Clamp(batch->position[r] + 1 - split * kSplit, kSplit);
  }
  return batch->limit[batch->rows - 1];
}

// Scores of every tile against `groups` groups that begin at position `from` of the split.
template <class E>
LOCKSTEP_VEC void ScoreTiles(const Batch& batch, const E* const* keys, int32_t groups, int32_t from,
                             int32_t head_dim) {
  for (int32_t begin = 0; begin < batch.rows; begin += batch.tile) {
    const int32_t rows = Smaller(batch.tile, batch.rows - begin);
    const int32_t seen = batch.limit[begin + rows - 1] - from;
    const int32_t wanted = Smaller(groups, (seen + 15) / 16);
    if (wanted <= 0) continue;
    ScoreRows(rows, batch.queries + begin * batch.padded_dim, keys, wanted, head_dim,
              batch.scores + begin * kScoreStride + from);
  }
}

template <class E>
void ScoreSplit(const Cache<E>& cache, const Batch& batch, int32_t split, int32_t positions) {
  const int32_t head_dim = cache.layer.head_dim;
  const int32_t groups = (positions + 15) / 16;
  const int64_t group_size = int64_t{16} * head_dim;
  const E* keys[kSplit / 16];
  for (int32_t g = 0; g < groups; ++g) {
    const int32_t position = split * kSplit + 16 * g;
    keys[g] = cache.Keys(position) + position % kBlockTokens / 16 * group_size;
  }
  if (batch.tile == batch.rows) return ScoreTiles(batch, keys, groups, 0, head_dim);

  constexpr int32_t kGroups = kBlockTokens / 16;
  for (int32_t g = 0; g < groups; g += kGroups) {
    const int32_t count = Smaller(kGroups, groups - g);
    if constexpr (sizeof(E) == sizeof(float)) {
      ScoreTiles(batch, keys + g, count, 16 * g, head_dim);
    } else {
      const float* widened[kGroups];
      for (int32_t i = 0; i < count; ++i) {
        float* to = batch.block + i * group_size;
        for (int64_t e = 0; e < group_size; e += 16) Store(to + e, Load(keys[g + i] + e));
        widened[i] = to;
      }
      ScoreTiles(batch, widened, count, 16 * g, head_dim);
    }
  }
}

// Turns the n scores of a row into p; the rest of the last vector becomes +0.
LOCKSTEP_VEC void Softmax(float* scores, int32_t n, float* m, float* l) {
  const V lowest = Set1(-__builtin_inff());
  const int32_t full = n / 16 * 16;
  V max = lowest;
  for (int32_t t = 0; t < full; t += 16) max = Max(Load(scores + t), max);
  if (full < n) {
    const V last = Select(FirstN(n - full), Load(scores + full), lowest);
    Store(scores + full, last);
    max = Max(last, max);
  }
  *m = ReduceMax(max);
  const V top = Set1(*m);
  V sum = Zero();
  for (int32_t t = 0; t < n; t += 16) {
    const V p = Exp2(Sub(Load(scores + t), top));
    Store(scores + t, p);
    sum = Add(sum, p);
  }
  *l = ReduceAdd(sum);
}

template <class E>
LOCKSTEP_VEC void ValueTiles(const Batch& batch, const E* values, int64_t stride, int32_t from,
                             int32_t head_dim, float* out) {
  for (int32_t begin = 0; begin < batch.rows; begin += batch.tile) {
    const int32_t rows = Smaller(batch.tile, batch.rows - begin);
    // The positions that all rows of the tile see together, then each row's own rest.
    const int32_t common = Clamp(batch.limit[begin] - from, kBlockTokens);
    ValueSpan<E> span{batch.scores + begin * kScoreStride + from,
                      values,
                      stride,
                      common,
                      head_dim,
                      out + begin * batch.padded_dim,
                      batch.padded_dim};
    if (common > 0) ValueRows(rows, span);
    for (int32_t r = 0; r < rows; ++r) {
      const int32_t seen = Clamp(batch.limit[begin + r] - from, kBlockTokens);
      if (seen == common) continue;
      ValueSpan<E> rest = span;
      rest.p += r * kScoreStride + common;
      rest.values += common * stride;
      rest.positions = seen - common;
      rest.out += r * batch.padded_dim;
      ValueRows(1, rest);
    }
  }
}

template <class E>
void ValueSplit(const Cache<E>& cache, const Batch& batch, int32_t split, int32_t positions,
                float* out) {
  const int32_t head_dim = cache.layer.head_dim;
  for (int64_t i = 0; i < batch.rows * batch.padded_dim; i += 16) Store(out + i, Zero());
  for (int32_t from = 0; from < positions; from += kBlockTokens) {
    const E* values = cache.Values(split * kSplit + from);
    if (sizeof(E) == sizeof(float) || batch.tile == batch.rows) {
      ValueTiles(batch, values, head_dim, from, head_dim, out);
      continue;
    }
    const int32_t count = Smaller(kBlockTokens, positions - from);
    for (int32_t t = 0; t < count; ++t) {
      const E* row = values + int64_t{t} * head_dim;
      float* to = batch.block + t * batch.padded_dim;
      int32_t d = 0;
      for (; d + 16 <= head_dim; d += 16) Store(to + d, Load(row + d));
      if (d < head_dim) Store(to + d, LoadHalf(row + d));
    }
    ValueTiles(batch, batch.block, batch.padded_dim, from, head_dim, out);
  }
}

// (m, l, o) of all splits so far, and the next split's.
LOCKSTEP_VEC void FoldSplit(float next_m, float next_l, const float* next_o, int32_t head_dim,
                            float* m, float* l, float* o) {
  const V both = Select(FirstN(1), Set1(*m), Set1(next_m));
  const float top = *m > next_m ? *m : next_m;
  float factors[16];
  Store(factors, Exp2(Sub(both, Set1(top))));
  const V a = Set1(factors[0]), b = Set1(factors[1]);
  Store(factors, Fma(Set1(*l), a, Mul(Set1(next_l), b)));
  *m = top;
  *l = factors[0];
  int32_t d = 0;
  for (; d + 16 <= head_dim; d += 16) {
    Store(o + d, Fma(Load(o + d), a, Mul(Load(next_o + d), b)));
  }
  if (d < head_dim) StoreHalf(o + d, Fma(LoadHalf(o + d), a, Mul(LoadHalf(next_o + d), b)));
}

LOCKSTEP_VEC void Normalise(const float* o, float l, int32_t head_dim, float* out) {
  const V inverse = Set1(1.0f / l);
  int32_t d = 0;
  for (; d + 16 <= head_dim; d += 16) Store(out + d, Mul(Load(o + d), inverse));
  if (d < head_dim) StoreHalf(out + d, Mul(LoadHalf(o + d), inverse));
}

LOCKSTEP_VEC Batch MakeBatch(const AttentionScratch& at, float* scratch) {
  Batch batch;
  batch.queries = scratch + at.queries;
  batch.scores = scratch + at.scores;
  batch.block = scratch + at.block;
  batch.padded_dim = at.padded_dim;
  return batch;
}

// m, l and o of every row of the batch for one split; rows that see nothing of it are left alone.
template <class E>
void ComputeSplit(const Cache<E>& cache, int32_t split, Batch* batch, float* m, float* l,
                  float* o) {
  const int32_t positions = SetLimits(split, batch);
  ScoreSplit(cache, *batch, split, positions);
  for (int32_t r = 0; r < batch->rows; ++r) {
    if (batch->limit[r] > 0)
      Softmax(batch->scores + r * kScoreStride, batch->limit[r], m + r, l + r);
  }
  ValueSplit(cache, *batch, split, positions, o);
}

template <class E>
void AttendCodec(const Cache<E>& cache, const AttentionQuery& query, float* out, int64_t out_stride,
                 float* scratch) {
  const int32_t head_dim = cache.layer.head_dim;
  const AttentionScratch at = LayOutScratch(head_dim);
  Batch batch = MakeBatch(at, scratch);
  float* o = scratch + at.out;
  float* split_o = scratch + at.split_out;
  float m[kBatchRows], l[kBatchRows], split_m[kBatchRows], split_l[kBatchRows];
  const int32_t total = query.tokens * query.heads;
  for (int32_t first = 0; first < total; first += kBatchRows) {
    StartBatch(query, head_dim, first, Smaller(kBatchRows, total - first), &batch);
    const int32_t splits = batch.position[batch.rows - 1] / kSplit + 1;
    ComputeSplit(cache, 0, &batch, m, l, o);
    for (int32_t split = 1; split < splits; ++split) {
      ComputeSplit(cache, split, &batch, split_m, split_l, split_o);
      for (int32_t r = 0; r < batch.rows; ++r) {
        if (batch.limit[r] == 0) continue;
        FoldSplit(split_m[r], split_l[r], split_o + r * at.padded_dim, head_dim, m + r, l + r,
                  o + r * at.padded_dim);
      }
    }
    for (int32_t r = 0; r < batch.rows; ++r) {
      const int32_t token = (first + r) / query.heads, head = (first + r) % query.heads;
      Normalise(o + r * at.padded_dim, l[r], head_dim,
                out + token * out_stride + int64_t{head} * head_dim);
    }
  }
}

template <class E>
void AttendSplitCodec(const Cache<E>& cache, const AttentionQuery& query, int32_t split,
                      float* partial, float* scratch) {
  const int32_t head_dim = cache.layer.head_dim;
  const AttentionScratch at = LayOutScratch(head_dim);
  Batch batch = MakeBatch(at, scratch);
  const float* o = scratch + at.out;
  float m[kBatchRows], l[kBatchRows];
  for (int32_t first = 0; first < query.heads; first += kBatchRows) {
    StartBatch(query, head_dim, first, Smaller(kBatchRows, query.heads - first), &batch);
    ComputeSplit(cache, split, &batch, m, l, scratch + at.out);
    for (int32_t r = 0; r < batch.rows; ++r) {
      float* to = partial + (first + r) * PartialFloats(head_dim);
      to[0] = m[r];
      to[1] = l[r];
      for (int32_t d = 0; d < head_dim; ++d) to[2 + d] = o[r * at.padded_dim + d];
    }
  }
}

template <class E>
void AppendCodec(const KvLayer& layer, const int32_t* table, int32_t position, int32_t kv_head,
                 const float* k, const float* v) {
  const Cache<E> cache{layer, table, kv_head};
  const int32_t head_dim = layer.head_dim;
  const int32_t slot = position % kBlockTokens;
  E* keys = const_cast<E*>(cache.Keys(position)) + int64_t{slot / 16} * 16 * head_dim + slot % 16;
  E* values = const_cast<E*>(cache.Values(position)) + int64_t{slot} * head_dim;
  for (int32_t d = 0; d < head_dim; d += 16) {
    const bool whole = d + 16 <= head_dim;
    const int32_t count = whole ? 16 : 8;
    E encoded[16];
    Store(encoded, whole ? Load(k + d) : LoadHalf(k + d));
    for (int32_t i = 0; i < count; ++i) keys[(d + i) * 16] = encoded[i];
    if (whole) {
      Store(values + d, Load(v + d));
    } else {
      StoreHalf(values + d, LoadHalf(v + d));
    }
  }
}

void Append(const KvLayer& layer, const int32_t* table, int32_t position, int32_t kv_head,
            const float* k, const float* v) {
  if (layer.codec == KvCodec::kF32) {
    AppendCodec<float>(layer, table, position, kv_head, k, v);
  } else {
    AppendCodec<uint16_t>(layer, table, position, kv_head, k, v);
  }
}

void Attend(const KvLayer& layer, const int32_t* table, const AttentionQuery& query, float* out,
            int64_t out_stride, void* scratch) {
  float* floats = static_cast<float*>(scratch);
  if (layer.codec == KvCodec::kF32) {
    AttendCodec(Cache<float>{layer, table, query.kv_head}, query, out, out_stride, floats);
  } else {
    AttendCodec(Cache<uint16_t>{layer, table, query.kv_head}, query, out, out_stride, floats);
  }
}

void AttendSplit(const KvLayer& layer, const int32_t* table, const AttentionQuery& query,
                 int32_t split, float* partial, void* scratch) {
  float* floats = static_cast<float*>(scratch);
  if (layer.codec == KvCodec::kF32) {
    AttendSplitCodec(Cache<float>{layer, table, query.kv_head}, query, split, partial, floats);
  } else {
    AttendSplitCodec(Cache<uint16_t>{layer, table, query.kv_head}, query, split, partial, floats);
  }
}

void Fold(const float* partial, int64_t partial_stride, int32_t splits, int32_t head_dim,
          float* out) {
  float m = partial[0];
  float l = partial[1];
  for (int32_t d = 0; d < head_dim; ++d) out[d] = partial[2 + d];
  for (int32_t s = 1; s < splits; ++s) {
    const float* next = partial + s * partial_stride;
    FoldSplit(next[0], next[1], next + 2, head_dim, &m, &l, out);
  }
  Normalise(out, l, head_dim, out);
}
