// The kernels of attention.h over the vocabulary (generic/vocabulary.md, attention_words.md). A
// fragment: included after attention_tiles-inl.h, inside the namespace of an instruction set. E is
// the codec's element (attention_codecs-inl.h).
//
// Rows are worked on in batches of up to kBatchRows; for each split of the cache a batch computes
// all scores, then the softmax, then the outputs, and folds them. One tile of rows reads f32 and
// bf16 where they lie; several share blocks that are widened to f32 once, and other codecs are
// always widened. Positions that a row does not see are cut off by its spans: their scores are
// never selected and their values never read for it.

constexpr int32_t kMostTiles = kBatchRows / kTileRows + 1;

// Positions of the current split, one span a row, and what the rows of each tile share.
struct Spans {
  int32_t begin[kBatchRows], end[kBatchRows];                // both 0: none
  int32_t common_begin[kMostTiles], common_end[kMostTiles];  // seen by all rows of the tile
  int32_t tile_end[kMostTiles];                              // seen by none from here on
  int32_t first, last;                                       // of all rows
};

struct Batch {
  int32_t rows;
  int32_t tile;  // rows of every tile but the last
  int32_t position[kBatchRows];
  Spans kept;  // the first positions, of a query with a window
  Spans seen;  // all others
  float* queries;
  float* scores;
  float* block;
  int64_t padded_dim;

  int32_t TileRows(int32_t begin) const { return Smaller(tile, rows - begin); }
};

LOCKSTEP_VEC int32_t Clamp(int32_t x, int32_t high) { return x < 0 ? 0 : Smaller(x, high); }

void StartBatch(const AttentionQuery& query, int32_t head_dim, int32_t first_row, int32_t rows,
                Batch* batch) {
  const float factor = query.scale * kLog2E;
  const int32_t tiles = (rows + kTileRows - 1) / kTileRows;
  batch->rows = rows;
  batch->tile = (rows + tiles - 1) / tiles;
  for (int32_t begin = 0; begin < rows; begin += batch->tile) {
    const int32_t count = batch->TileRows(begin);
    const float* queries[kTileRows];
    for (int32_t r = 0; r < count; ++r) {
      const int32_t token = (first_row + begin + r) / query.heads;
      const int32_t head = (first_row + begin + r) % query.heads;
      batch->position[begin + r] = query.first_position + token;
      queries[r] = query.q + token * query.token_stride + int64_t{head} * head_dim;
    }
    float* to = batch->queries + begin * batch->padded_dim;
    for (int32_t d = 0; d < head_dim; ++d) {
      for (int32_t r = 0; r < count; ++r) *to++ = queries[r][d] * factor;
    }
  }
}

void ShareSpans(const Batch& batch, Spans* spans) {
  spans->first = kSplit;
  spans->last = 0;
  for (int32_t begin = 0, tile = 0; begin < batch.rows; begin += batch.tile, ++tile) {
    int32_t common_begin = 0, common_end = kSplit, end = 0;
    for (int32_t r = begin; r < begin + batch.TileRows(begin); ++r) {
      common_begin = Greater(common_begin, spans->begin[r]);
      common_end = Smaller(common_end, spans->end[r]);
      end = Greater(end, spans->end[r]);
      if (spans->end[r] > 0) spans->first = Smaller(spans->first, spans->begin[r]);
    }
    spans->common_begin[tile] = common_begin;
    spans->common_end[tile] = common_end;
    spans->tile_end[tile] = end;
    spans->last = Greater(spans->last, end);
  }
}

// What each row sees of the split.
void SetSpans(const AttentionQuery& query, int32_t split, Batch* batch) {
  Spans &kept = batch->kept, &seen = batch->seen;
  kept.first = kept.last = 0;
  for (int32_t r = 0; r < batch->rows; ++r) {
    const int32_t end = batch->position[r] + 1 - split * kSplit;
    seen.begin[r] = 0;
    seen.end[r] = Clamp(end, kSplit);
    kept.begin[r] = kept.end[r] = 0;
    if (query.window == 0) continue;
    // The kept ones make one span with the window where they meet, and are the only one where the
    // window has nothing of this split.
    const int32_t keep = Clamp(Smaller(query.kept - split * kSplit, end), kSplit);
    seen.begin[r] = Clamp(end - query.window, kSplit);
    if (seen.begin[r] >= seen.end[r]) seen.end[r] = keep;
    if (seen.begin[r] <= keep || seen.end[r] == keep) {
      seen.begin[r] = 0;
    } else {
      kept.end[r] = keep;
    }
  }
  ShareSpans(*batch, &seen);
  if (query.window > 0 && query.kept > 0) ShareSpans(*batch, &kept);
}

// Scores of every tile against `count` halves of blocks that begin at position `from` of the split.
template <bool kFetch, class E>
LOCKSTEP_VEC void ScoreTiles(const Batch& batch, const Spans& spans, const std::byte* const* halves,
                             int32_t count, int32_t from, int32_t head_dim) {
  for (int32_t begin = 0, tile = 0; begin < batch.rows; begin += batch.tile, ++tile) {
    const int32_t wanted = Smaller(count, (spans.tile_end[tile] - from + kHalf - 1) / kHalf);
    if (wanted <= 0) continue;
    ScoreRows<kFetch, E>(batch.TileRows(begin), batch.queries + begin * batch.padded_dim, halves,
                         wanted, head_dim, batch.scores + begin * kScoreStride + from);
  }
}

template <class E>
void ScoreSpans(const Cache& cache, const Batch& batch, const Spans& spans, int32_t split) {
  const int32_t head_dim = cache.layer.head_dim;
  const int32_t from = spans.first / kBlockTokens * kBlockTokens;
  const int32_t count = (spans.last - from + kHalf - 1) / kHalf;
  if (spans.last == 0) return;
  // And those that come next: the values, which lie behind the keys of their block.
  constexpr int32_t kAhead = 4;
  const std::byte* halves[kSplit / kHalf + kAhead];
  for (int32_t h = 0; h < count; ++h) halves[h] = cache.Keys(split * kSplit + from + kHalf * h);
  for (int32_t h = 0; h < kAhead; ++h) {
    halves[count + h] = cache.Values(split * kSplit + from + kHalf * Smaller(h, count - 1));
  }
  const bool one_tile = batch.tile == batch.rows;
  if constexpr (kDirect<E>) {
    if (one_tile) return ScoreTiles<kFetches, E>(batch, spans, halves, count, from, head_dim);
  }
  if constexpr (kIsFloat<E>) {
    for (int32_t h = 0; h < count; h += 2) {
      ScoreTiles<false, E>(batch, spans, halves + h, Smaller(2, count - h), from + kHalf * h,
                           head_dim);
    }
  } else {
    const int64_t size = int64_t{kHalf} * head_dim;
    const std::byte* widened[2] = {reinterpret_cast<const std::byte*>(batch.block),
                                   reinterpret_cast<const std::byte*>(batch.block + size)};
    for (int32_t h = 0; h < count; h += 2) {
      const int32_t both = Smaller(2, count - h);
      for (int32_t i = 0; i < both; ++i) {
        WidenKeys<E>(cache.layer, halves[h + i], halves[h + i + 2] - halves[h + i],
                     batch.block + i * size);
      }
      ScoreTiles<false, float>(batch, spans, widened, both, from + kHalf * h, head_dim);
    }
  }
}

// Adds the block whose first position in the split is `from`, `stride` elements from a position to
// the next, to the outputs of every tile.
template <bool kFetch, class E>
LOCKSTEP_VEC void ValueTiles(const Batch& batch, const Spans& spans, const E* values,
                             int64_t stride, int64_t to_next, int32_t from, int32_t head_dim,
                             float* out) {
  for (int32_t first = 0, tile = 0; first < batch.rows; first += batch.tile, ++tile) {
    const int32_t rows = batch.TileRows(first);
    const int32_t begin = Clamp(spans.common_begin[tile] - from, kBlockTokens);
    const int32_t end = Greater(Clamp(spans.common_end[tile] - from, kBlockTokens), begin);
    // Of each row what comes before the positions that all rows of the tile see together, those
    // together, and of each row the rest.
    ValueSpan<E> span{nullptr,          values, stride, 0, head_dim, out + first * batch.padded_dim,
                      batch.padded_dim, to_next};
    const float* p = batch.scores + first * kScoreStride + from;
    for (int32_t r = 0; r < rows; ++r) {
      const int32_t at = Clamp(spans.begin[first + r] - from, kBlockTokens);
      const int32_t stop = Smaller(spans.end[first + r] - from, begin);
      if (at < stop) ValueRow<kFetch>(span, p, r, at, stop);
    }
    if (begin < end) {
      ValueSpan<E> together = span;
      together.p = p + begin;
      together.values += begin * stride;
      together.positions = end - begin;
      ValueRows<kFetch>(rows, together);
    }
    for (int32_t r = 0; r < rows; ++r) {
      const int32_t at = Greater(Clamp(spans.begin[first + r] - from, kBlockTokens), end);
      const int32_t stop = Smaller(spans.end[first + r] - from, kBlockTokens);
      if (at < stop) ValueRow<kFetch>(span, p, r, at, stop);
    }
  }
}

template <class E>
void ValueSpans(const Cache& cache, const Batch& batch, const Spans& spans, int32_t split,
                const std::byte* after, float* out) {
  const int32_t value_dim = cache.layer.value_dim();
  const bool latent = cache.layer.latent_dim > 0;
  const bool one_tile = batch.tile == batch.rows;
  for (int32_t from = spans.first / kBlockTokens * kBlockTokens; from < spans.last;
       from += kBlockTokens) {
    const std::byte* values = cache.Values(split * kSplit + from);
    const int32_t next = from + kBlockTokens;
    const std::byte* next_values = next < spans.last ? cache.Values(split * kSplit + next) : after;
    const int64_t to_next = next_values != nullptr ? next_values - values : 0;
    if constexpr (kDirect<E>) {
      const E* elements = reinterpret_cast<const E*>(values);
      if (one_tile && !latent) {
        ValueTiles<kFetches>(batch, spans, elements, value_dim, to_next, from, value_dim, out);
        continue;
      }
      if constexpr (kIsFloat<E>) {
        if (!latent) {
          ValueTiles<false>(batch, spans, elements, value_dim, 0, from, value_dim, out);
          continue;
        }
      }
    }
    const int32_t count = Smaller(kBlockTokens, spans.last - from);
    for (int32_t half = 0; half * kHalf < count; ++half) {
      const std::byte* half_values = values + half * cache.half_bytes;
      const int32_t positions = Smaller(kHalf, count - half * kHalf);
      float* to = batch.block + half * kHalf * batch.padded_dim;
      if (latent) {
        WidenLatents<E>(cache.layer, half_values, to_next, positions, to, batch.padded_dim);
      } else {
        WidenValues<E>(cache.layer, half_values, to_next, positions, to, batch.padded_dim);
      }
    }
    ValueTiles<false>(batch, spans, batch.block, batch.padded_dim, 0, from, value_dim, out);
  }
}

LOCKSTEP_VEC Batch MakeBatch(const AttentionScratch& at, float* scratch) {
  Batch batch;
  batch.queries = scratch + at.queries;
  batch.scores = scratch + at.scores;
  batch.block = scratch + at.block;
  batch.padded_dim = at.padded_dim;
  return batch;
}

// m, l and o of every row of the batch for one split; l is 0 where a row sees nothing of it.
template <class E>
void ComputeSplit(const Cache& cache, const AttentionQuery& query, int32_t split, Batch* batch,
                  float* m, float* l, float* o) {
  SetSpans(query, split, batch);
  const Spans &kept = batch->kept, &seen = batch->seen;
  ScoreSpans<E>(cache, *batch, kept, split);
  ScoreSpans<E>(cache, *batch, seen, split);
  for (int32_t r = 0; r < batch->rows; ++r) {
    float* scores = batch->scores + r * kScoreStride;
    const int32_t end = seen.end[r];
    m[r] = l[r] = 0.0f;
    if (end == 0) continue;
    if (query.soft_cap > 0.0f) SoftCap(scores, end, query.soft_cap * kLog2E);
    if (query.window > 0) {
      for (int32_t t = kept.end[r]; t < seen.begin[r]; ++t) scores[t] = -__builtin_inff();
    }
    Softmax(scores, end, m + r, l + r);
  }
  for (int64_t i = 0; i < batch->rows * batch->padded_dim; i += 16) Store(o + i, Zero());
  // What is read after this split: the keys of the next one.
  const int32_t next = (split + 1) * kSplit;
  const bool last = next > batch->position[batch->rows - 1] || query.window > 0;
  ValueSpans<E>(cache, *batch, kept, split, nullptr, o);
  ValueSpans<E>(cache, *batch, seen, split, last ? nullptr : cache.Keys(next), o);
}

// The split after `split` that some row of the batch may see.
LOCKSTEP_VEC int32_t NextSplit(const AttentionQuery& query, const Batch& batch, int32_t split) {
  const int32_t next = split + 1;
  if (query.window == 0 || next * kSplit < query.kept) return next;
  return Greater(next, Clamp(batch.position[0] + 1 - query.window, batch.position[0]) / kSplit);
}

template <class E>
void AttendCodec(const Cache& cache, const AttentionQuery& query, float* out, int64_t out_stride,
                 float* scratch) {
  const int32_t head_dim = cache.layer.head_dim, value_dim = cache.layer.value_dim();
  const AttentionScratch at = LayOutScratch(head_dim);
  Batch batch = MakeBatch(at, scratch);
  float* o = scratch + at.out;
  float* split_o = scratch + at.split_out;
  float m[kBatchRows], l[kBatchRows], split_m[kBatchRows], split_l[kBatchRows];
  const int32_t total = query.tokens * query.heads;
  for (int32_t first = 0; first < total; first += kBatchRows) {
    StartBatch(query, head_dim, first, Smaller(kBatchRows, total - first), &batch);
    const int32_t splits = batch.position[batch.rows - 1] / kSplit + 1;
    int32_t split = NextSplit(query, batch, -1);
    ComputeSplit<E>(cache, query, split, &batch, m, l, o);
    for (split = NextSplit(query, batch, split); split < splits;
         split = NextSplit(query, batch, split)) {
      ComputeSplit<E>(cache, query, split, &batch, split_m, split_l, split_o);
      for (int32_t r = 0; r < batch.rows; ++r) {
        FoldSplit(split_m[r], split_l[r], split_o + r * at.padded_dim, value_dim, m + r, l + r,
                  o + r * at.padded_dim);
      }
    }
    for (int32_t r = 0; r < batch.rows; ++r) {
      const int32_t token = (first + r) / query.heads, head = (first + r) % query.heads;
      Finish(o + r * at.padded_dim, m[r], l[r],
             query.sinks != nullptr ? query.sinks + head : nullptr, value_dim,
             out + token * out_stride + int64_t{head} * value_dim);
    }
  }
}

template <class E>
void AttendSplitCodec(const Cache& cache, const AttentionQuery& query, int32_t split,
                      float* partial, float* scratch) {
  const int32_t head_dim = cache.layer.head_dim, value_dim = cache.layer.value_dim();
  const AttentionScratch at = LayOutScratch(head_dim);
  Batch batch = MakeBatch(at, scratch);
  const float* o = scratch + at.out;
  float m[kBatchRows], l[kBatchRows];
  for (int32_t first = 0; first < query.heads; first += kBatchRows) {
    StartBatch(query, head_dim, first, Smaller(kBatchRows, query.heads - first), &batch);
    ComputeSplit<E>(cache, query, split, &batch, m, l, scratch + at.out);
    for (int32_t r = 0; r < batch.rows; ++r) {
      float* to = partial + (first + r) * PartialFloats(value_dim);
      to[0] = m[r];
      to[1] = l[r];
      for (int32_t d = 0; d < value_dim; ++d) to[2 + d] = o[r * at.padded_dim + d];
    }
  }
}

void Append(const KvLayer& layer, const int32_t* table, int32_t position, int32_t kv_head,
            const float* k, const float* v) {
  const Cache cache(layer, table, kv_head);
  switch (layer.scheme.codec) {
    case KvCodec::kF32:
      return AppendFloats<float>(cache, position, k, v);
    case KvCodec::kF16:
      return AppendFloats<F16>(cache, position, k, v);
    case KvCodec::kBF16:
      return AppendFloats<Bf16>(cache, position, k, v);
    case KvCodec::kQ8:
      return AppendAffine<Q8>(cache, position, k, v);
    case KvCodec::kQ4:
      return AppendAffine<Q4>(cache, position, k, v);
  }
}

void Attend(const KvLayer& layer, const int32_t* table, const AttentionQuery& query, float* out,
            int64_t out_stride, void* scratch) {
  const Cache cache(layer, table, query.kv_head);
  float* floats = static_cast<float*>(scratch);
  switch (layer.scheme.codec) {
    case KvCodec::kF32:
      return AttendCodec<float>(cache, query, out, out_stride, floats);
    case KvCodec::kF16:
      return AttendCodec<F16>(cache, query, out, out_stride, floats);
    case KvCodec::kBF16:
      return AttendCodec<Bf16>(cache, query, out, out_stride, floats);
    case KvCodec::kQ8:
      return AttendCodec<Q8>(cache, query, out, out_stride, floats);
    case KvCodec::kQ4:
      return AttendCodec<Q4>(cache, query, out, out_stride, floats);
  }
}

void AttendSplit(const KvLayer& layer, const int32_t* table, const AttentionQuery& query,
                 int32_t split, float* partial, void* scratch) {
  const Cache cache(layer, table, query.kv_head);
  float* floats = static_cast<float*>(scratch);
  switch (layer.scheme.codec) {
    case KvCodec::kF32:
      return AttendSplitCodec<float>(cache, query, split, partial, floats);
    case KvCodec::kF16:
      return AttendSplitCodec<F16>(cache, query, split, partial, floats);
    case KvCodec::kBF16:
      return AttendSplitCodec<Bf16>(cache, query, split, partial, floats);
    case KvCodec::kQ8:
      return AttendSplitCodec<Q8>(cache, query, split, partial, floats);
    case KvCodec::kQ4:
      return AttendSplitCodec<Q4>(cache, query, split, partial, floats);
  }
}

void Fold(const float* partial, int64_t partial_stride, int32_t splits, const float* sink,
          int32_t value_dim, float* out) {
  float m = 0.0f, l = 0.0f;
  for (int32_t s = 0; s < splits; ++s) {
    const float* next = partial + s * partial_stride;
    FoldSplit(next[0], next[1], next + 2, value_dim, &m, &l, out);
  }
  Finish(out, m, l, sink, value_dim, out);
}
