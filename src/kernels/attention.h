// Attention of query rows over a sequence's cached keys and values, read through its block table.
//
// One arithmetic for prompt chunks and decoding rows alike. For a query at position p the cache is
// cut at absolute positions into splits of kSplit tokens; the last split ends at p. Within a split,
// with q' = q * (scale * log2 e):
//   s[t] = chain over d ascending of fma(q'[d], k[t][d], .), from +0
//   m = max over t of s[t];  p[t] = exp2(s[t] - m);  l = sum of p over 16 virtual lanes (t % 16),
//   fixed tree o[d] = chain over t ascending of fma(p[t], v[t][d], .), from +0
// and splits are folded in ascending order: (m, l, o) and the next (m', l', o') give
//   M = max(m, m'); a = exp2(m - M); b = exp2(m' - M); (M, fma(l, a, l' * b), fma(o, a, o' * b))
// and the output is o * (1 / l). A query's bits depend on its own position and its sequence's cache
// alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels {

inline constexpr int32_t kBlockTokens = 32;  // positions of a cache block; two lane groups of 16
inline constexpr int32_t kSplit = 256;       // positions of a split; a multiple of kBlockTokens

enum class KvCodec : uint8_t { kF32, kBF16 };

// One layer's cache. A block holds, for each KV head in turn, its keys and then its values:
//   keys   [kBlockTokens / 16][head_dim][16]   (16 consecutive positions are contiguous for each d)
//   values [kBlockTokens][head_dim]
// in the codec's elements. bf16 rounds half to even; NaN stays NaN.
struct KvLayer {
  std::byte* data = nullptr;  // 64-byte aligned
  int64_t block_stride = 0;   // bytes from a block to the next, in this layer
  int32_t kv_heads = 0;
  int32_t head_dim = 0;  // a multiple of 8, at most 576
  KvCodec codec = KvCodec::kBF16;
};

// Bytes of one block of one layer.
constexpr int64_t KvBlockBytes(int32_t kv_heads, int32_t head_dim, KvCodec codec) {
  const int64_t element = codec == KvCodec::kF32 ? 4 : 2;
  return 2 * element * kBlockTokens * kv_heads * head_dim;
}

// The queries of consecutive positions of one sequence for the `heads` query heads that share one
// KV head.
struct AttentionQuery {
  const float* q = nullptr;  // q[token * token_stride + head * head_dim + d]
  int64_t token_stride = 0;
  int32_t tokens = 0;          // any number
  int32_t heads = 0;           // query heads of this KV head
  int32_t first_position = 0;  // position of token 0; the cache holds [0, first_position + tokens)
  int32_t kv_head = 0;
  float scale = 0.0f;  // usually 1 / sqrt(head_dim)
};

// The partial result of one (token, head) and split: m, l and o, stored as [2 + head_dim] floats.
constexpr int64_t PartialFloats(int32_t head_dim) { return 2 + head_dim; }

struct AttentionKernels {
  // Writes the keys and values of one KV head at `position`; k and v are [head_dim].
  void (*append)(const KvLayer& layer, const int32_t* table, int32_t position, int32_t kv_head,
                 const float* k, const float* v);

  // All splits, folded and normalised: out[token * out_stride + head * head_dim + d].
  // scratch: AttentionScratchBytes(head_dim, heads), 64-byte aligned, one a thread.
  void (*attend)(const KvLayer& layer, const int32_t* table, const AttentionQuery& query,
                 float* out, int64_t out_stride, void* scratch);

  // One split of one token's queries (query.tokens == 1), unfolded: partial[head] as above. The
  // split begins at split * kSplit <= first_position. For sharing a long context among threads.
  void (*attend_split)(const KvLayer& layer, const int32_t* table, const AttentionQuery& query,
                       int32_t split, float* partial, void* scratch);

  // Folds `splits` partials of one head (partial + s * partial_stride) and normalises into out
  // [head_dim]. attend() == attend_split() over all splits, then fold(), bit for bit.
  void (*fold)(const float* partial, int64_t partial_stride, int32_t splits, int32_t head_dim,
               float* out);
};

size_t AttentionScratchBytes(int32_t head_dim, int32_t heads);

}  // namespace lockstep::kernels
