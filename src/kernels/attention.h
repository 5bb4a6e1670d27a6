// Attention of query rows over a sequence's cached keys and values, read through its block table.
//
// One arithmetic for prompt chunks and decoding rows alike. For a query at position p the cache is
// cut at absolute positions into splits of kSplit tokens; the last split ends at p. Within a split,
// over the positions t that the query sees, with q' = q * (scale * log2 e) and k, v as the codec
// gives them back in f32:
//   s[t] = chain over d ascending of fma(q'[d], k[t][d], .), from +0; soft-capped if asked for
//   m = the largest s[t] rounded up to an integer; p[t] = 2^(s[t] - m)
//   l = sum of p over 16 virtual lanes (t % 16), fixed tree
//   o[d] = chain over t ascending of fma(p[t], v[t][d], .), from +0
// and splits are folded in ascending order: (m, l, o) and the next (m', l', o') give
//   M = max(m, m'); a = exp2(m - M); b = exp2(m' - M); (M, fma(l, a, l' * b), fma(o, a, o' * b))
// A sink of logit z is folded last, as (z * log2 e, 1, 0). The output is o * (1 / l). A query's
// bits depend on its own position and its sequence's cache alone. The words are exact in
// docs/numerics.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels {

inline constexpr int32_t kBlockTokens = 32;  // positions of a cache block; two lane groups of 16
inline constexpr int32_t kSplit = 256;       // positions of a split; a multiple of kBlockTokens

// f16 and bf16 round half to even. q8 and q4 are affine: a group of consecutive elements of a head
// shares a scale and a bias, both f16, and an element is fma(code, scale, bias). The bias is the
// least element rounded down, the scale reaches the greatest, and a code is the nearest: an element
// comes back within half a scale. NaN stays NaN (the whole group, where there are groups), and what
// f16 cannot hold becomes infinite or NaN.
enum class KvCodec : uint8_t { kF32, kF16, kBF16, kQ8, kQ4 };

struct KvScheme {
  KvCodec codec = KvCodec::kBF16;
  int32_t group = 0;  // of the affine codecs: 32 or 64, a divisor of the head size

  bool affine() const { return codec == KvCodec::kQ8 || codec == KvCodec::kQ4; }
  bool operator==(const KvScheme&) const = default;
};

// Bits of an element, its part of the group's scale and bias included, times the group.
constexpr int64_t KvBitsPerGroup(const KvScheme& scheme, int64_t group) {
  switch (scheme.codec) {
    case KvCodec::kF32:
      return 32 * group;
    case KvCodec::kF16:
    case KvCodec::kBF16:
      return 16 * group;
    case KvCodec::kQ8:
      return 8 * group + 32;
    case KvCodec::kQ4:
      return 4 * group + 32;
  }
  return 0;
}

// Bytes of one block of one layer; `latent`: of one that has keys alone.
constexpr int64_t KvBlockBytes(int32_t kv_heads, int32_t head_dim, const KvScheme& scheme,
                               bool latent = false) {
  const int64_t group = scheme.group > 0 ? scheme.group : head_dim;
  const int64_t half =
      kBlockTokens * kv_heads * (head_dim / group) * KvBitsPerGroup(scheme, group) / 8;
  return latent ? half : 2 * half;
}

// One layer's cache. A block holds, for each KV head in turn, its keys and then its values, each as
// two halves of 16 positions. Floats:
//   keys   [head_dim][16 positions]
//   values [16 positions][head_dim]
// where sixteen bf16 are stored as generic/attention_elements-inl.h says. Affine codecs, for each
// group of the head: f16 scales [16 positions], f16 biases [16 positions], then the codes
//   keys   [group][16 positions]
//   values [16 positions][group]
// as bytes; or, of q4, two of these sixteens in 16 bytes: the first in the low, the next in the
// high half of each byte.
//
// A latent layer keeps no values: the value of a position is the first `latent_dim` elements of its
// key, as the codec gives them back. Its block has the keys alone, and its outputs and partials
// have latent_dim elements where those of others have head_dim.
struct KvLayer {
  std::byte* data = nullptr;  // 64-byte aligned
  int64_t block_stride = 0;   // bytes from a block to the next, in this layer
  int32_t kv_heads = 0;
  int32_t head_dim = 0;  // a multiple of 8, at most 576; of the scheme's group, if it has one
  KvScheme scheme;
  int32_t latent_dim = 0;  // 0: values of their own; else a multiple of 8, at most head_dim

  int32_t value_dim() const { return latent_dim > 0 ? latent_dim : head_dim; }
};

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

  int32_t window = 0;            // 0: all positions; else the last `window`, the query's included,
  int32_t kept = 0;              // and the first `kept`. Blocks that nobody sees are never read
  float soft_cap = 0.0f;         // 0: none; else q k scale becomes soft_cap * tanh(. / soft_cap)
  const float* sinks = nullptr;  // [heads], logits that take part in the sum alone; null: none
};

// The partial result of one (token, head) and split: m, l and o, stored as [2 + value_dim] floats.
// Of a split that the query does not see, all are 0; folding it changes nothing.
constexpr int64_t PartialFloats(int32_t value_dim) { return 2 + value_dim; }

struct AttentionKernels {
  // Writes the keys and values of one KV head at `position`; k and v are [head_dim]; of a latent
  // layer v is not read. Different positions may be written by different threads at once.
  void (*append)(const KvLayer& layer, const int32_t* table, int32_t position, int32_t kv_head,
                 const float* k, const float* v);

  // All splits, folded and normalised: out[token * out_stride + head * value_dim + d].
  // scratch: AttentionScratchBytes(head_dim, heads), 64-byte aligned, one a thread.
  void (*attend)(const KvLayer& layer, const int32_t* table, const AttentionQuery& query,
                 float* out, int64_t out_stride, void* scratch);

  // One split of one token's queries (query.tokens == 1), unfolded: partial[head] as above. The
  // split begins at split * kSplit <= first_position. For sharing a long context among threads.
  void (*attend_split)(const KvLayer& layer, const int32_t* table, const AttentionQuery& query,
                       int32_t split, float* partial, void* scratch);

  // Folds `splits` partials of one head (partial + s * partial_stride), and the sink if there is
  // one, and normalises into out [value_dim]. attend() == attend_split() over all splits, then
  // fold(), bit for bit.
  void (*fold)(const float* partial, int64_t partial_stride, int32_t splits, const float* sink,
               int32_t value_dim, float* out);
};

size_t AttentionScratchBytes(int32_t head_dim, int32_t heads);

}  // namespace lockstep::kernels
