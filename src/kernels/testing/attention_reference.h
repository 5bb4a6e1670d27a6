// Attention as attention.h defines it, for tests: a sequence with its cache, the codecs in plain
// code, the definition in f32 spelled out operation by operation, and in double what it
// approximates.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/half.h"
#include "kernels/attention.h"
#include "kernels/generic/inline.h"
#include "kernels/kernels.h"

namespace lockstep::kernels {

// For the exponentials, the soft cap and the sum's tree, which the definition names without
// spelling them.
namespace plain {
#include "kernels/generic/attention_elements-inl.h"

#include "kernels/isa/scalar/vec-inl.h"

#include "kernels/isa/scalar/attention_words-inl.h"

#include "kernels/generic/math-inl.h"

#include "kernels/generic/attention_softmax-inl.h"
}  // namespace plain

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline constexpr KvScheme kF32{KvCodec::kF32, 0}, kF16{KvCodec::kF16, 0}, kBF16{KvCodec::kBF16, 0},
    kQ8{KvCodec::kQ8, 32}, kQ4{KvCodec::kQ4, 32}, kQ8By64{KvCodec::kQ8, 64},
    kQ4By64{KvCodec::kQ4, 64};

// What a query asks for beside plain causal attention.
struct Extras {
  const char* name = "";
  int32_t window = 0;
  int32_t kept = 0;
  float soft_cap = 0.0f;
  bool sinks = false;

  bool Sees(int32_t position, int32_t t) const {
    return t <= position && (window == 0 || t < kept || t > position - window);
  }
};

struct Shape {
  int32_t head_dim;
  int32_t heads;
  KvScheme scheme;
  Extras extras = {};
  int32_t latent_dim = 0;

  int32_t value_dim() const { return latent_dim > 0 ? latent_dim : head_dim; }
};

// The greatest f16 that is at most x.
inline float F16Below(float x) {
  uint16_t half = F32ToF16(x);
  if (F16ToF32(half) > x) half += (half & 0x8000u) != 0 ? 1 : -1;
  return F16ToF32(half);
}

// A head's elements as the codec of attention.h gives them back.
inline std::vector<float> Recoded(const float* x, int32_t head_dim, const KvScheme& scheme) {
  std::vector<float> y(x, x + head_dim);
  switch (scheme.codec) {
    case KvCodec::kF32:
      return y;
    case KvCodec::kF16:
      for (float& v : y) v = F16ToF32(F32ToF16(v));
      return y;
    case KvCodec::kBF16:
      for (float& v : y) v = BF16ToF32(F32ToBF16(v));
      return y;
    case KvCodec::kQ8:
    case KvCodec::kQ4:
      break;
  }
  const float greatest_code = scheme.codec == KvCodec::kQ8 ? 255.0f : 15.0f;
  for (int32_t begin = 0; begin < head_dim; begin += scheme.group) {
    const auto group = std::span(y).subspan(begin, scheme.group);
    if (std::any_of(group.begin(), group.end(), [](float v) { return std::isnan(v); })) {
      std::fill(group.begin(), group.end(), kNan);
      continue;
    }
    const auto [low, high] = std::minmax_element(group.begin(), group.end());
    const float bias = F16Below(*low);
    const float scale = -F16Below(-(*high - bias) / greatest_code);
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    for (float& v : group) {
      const float code = std::nearbyint(std::min(greatest_code, (v - bias) * inverse));
      v = std::fma(code, scale, bias);
    }
  }
  return y;
}

// A sequence: its queries, keys and values, and a cache of two KV heads whose second holds them.
// All of the cache that append() has not written is NaN.
class Sequence {
 public:
  static constexpr int32_t kHeads = 2, kHead = 1;

  Sequence(const Shape& shape, int32_t length, uint32_t seed, int32_t spread = 1)
      : shape_(shape), length_(length) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    const auto fill = [&](std::vector<float>* x, int64_t n) {
      x->resize(n);
      for (float& v : *x) v = normal(random);
    };
    fill(&q_, int64_t{length} * shape.heads * shape.head_dim);
    fill(&k_, int64_t{length} * shape.head_dim);
    fill(&v_, int64_t{length} * shape.head_dim);
    for (float& x : q_) x *= 2.0f;
    fill(&sinks_, shape.heads);
    for (int32_t p = 0; p < length; ++p) {
      for (const float x : Recoded(Key(p), shape.head_dim, shape.scheme)) keys_.push_back(x);
      const float* value = shape.latent_dim > 0 ? Key(p) : Value(p);
      for (const float x : Recoded(value, shape.head_dim, shape.scheme)) values_.push_back(x);
    }

    const int32_t blocks = (length + kBlockTokens - 1) / kBlockTokens;
    // Just as many entries as there are blocks, and the last block ends the memory: what lies
    // beyond is for the address sanitiser.
    table_.resize(blocks);
    for (int32_t b = 0; b < blocks; ++b) table_[b] = (blocks - 1 - b) * spread % (blocks * spread);
    const int64_t bytes = KvBlockBytes(kHeads, shape.head_dim, shape.scheme, shape.latent_dim > 0);
    const int64_t total = ((blocks - 1) * spread + 1) * bytes;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (total + 63) / 64 * 64)));
    std::memset(data_.get(), 0xff, total);
    layer_ = {data_.get(), bytes, kHeads, shape.head_dim, shape.scheme, shape.latent_dim};
    scratch_.reset(static_cast<std::byte*>(
        std::aligned_alloc(64, AttentionScratchBytes(shape.head_dim, shape.heads))));
  }

  void Append(const AttentionKernels& kernels, int32_t begin, int32_t end) {
    for (int32_t p = begin; p < end; ++p) {
      kernels.append(layer_, table_.data(), p, kHead, Key(p),
                     shape_.latent_dim > 0 ? nullptr : Value(p));
    }
  }

  AttentionQuery Query(int32_t begin, int32_t end) const {
    const int64_t stride = int64_t{shape_.heads} * shape_.head_dim;
    const float scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
    AttentionQuery query{
        q_.data() + begin * stride, stride, end - begin, shape_.heads, begin, kHead, scale};
    query.window = shape_.extras.window;
    query.kept = shape_.extras.kept;
    query.soft_cap = shape_.extras.soft_cap;
    if (shape_.extras.sinks) query.sinks = sinks_.data();
    return query;
  }

  void Attend(const AttentionKernels& kernels, int32_t begin, int32_t end,
              std::vector<float>* out) const {
    const int64_t stride = OutStride();
    kernels.attend(layer_, table_.data(), Query(begin, end), out->data() + begin * stride, stride,
                   scratch_.get());
  }

  // Appends [0, begin), then appends and attends chunk by chunk; the outputs from `begin` on, as
  // [token][head][value_dim].
  std::vector<float> Run(const AttentionKernels& kernels, int32_t begin,
                         const std::vector<int32_t>& ends) {
    std::vector<float> out(length_ * OutStride(), kNan);
    Append(kernels, 0, begin);
    const int64_t skipped = begin * OutStride();
    for (const int32_t end : ends) {
      Append(kernels, begin, end);
      Attend(kernels, begin, end, &out);
      begin = end;
    }
    const int64_t written = begin * OutStride();
    return {out.begin() + skipped, out.begin() + written};
  }

  int64_t OutStride() const { return int64_t{shape_.heads} * shape_.value_dim(); }
  const float* Key(int32_t p) const { return k_.data() + int64_t{p} * shape_.head_dim; }
  const float* Value(int32_t p) const { return v_.data() + int64_t{p} * shape_.head_dim; }
  const float* QueryRow(int32_t p, int32_t head) const {
    return q_.data() + (int64_t{p} * shape_.heads + head) * shape_.head_dim;
  }
  // As the cache gives them back.
  const float* CachedKey(int32_t p) const { return keys_.data() + int64_t{p} * shape_.head_dim; }
  const float* CachedValue(int32_t p) const {
    return values_.data() + int64_t{p} * shape_.head_dim;
  }
  float sink(int32_t head) const { return sinks_[head]; }
  const Shape& shape() const { return shape_; }
  const KvLayer& layer() const { return layer_; }
  int32_t* table() { return table_.data(); }
  std::vector<float>& queries() { return q_; }
  // Of all that is read of a position, what its output is made of.
  std::vector<float>& values() { return shape_.latent_dim > 0 ? k_ : v_; }
  void* scratch() { return scratch_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  Shape shape_;
  int32_t length_;
  std::vector<float> q_, k_, v_, keys_, values_, sinks_;
  std::vector<int32_t> table_;
  std::unique_ptr<std::byte, Free> data_, scratch_;
  KvLayer layer_;
};

// 2^s for a score relative to its split's reference: docs/numerics.md.
inline float Power(float s, float reference) {
  const float x = std::max(s, reference - 127.0f);
  const float nearest = std::nearbyint(x), f = x - nearest;
  float p = 0x1.5ac9b2p-10f;
  for (const float c : {0x1.3cec1ap-7f, 0x1.c6b9e8p-5f, 0x1.ebf9b6p-3f, 0x1.62e426p-1f, 1.0f}) {
    p = std::fma(p, f, c);
  }
  const int n = static_cast<int>(nearest - reference);
  return n <= -127 ? 0.0f : p * std::ldexp(1.0f, n);
}

// The definition in attention.h, one operation after the other. For scores of usual size.
inline std::vector<float> Definition(const Sequence& s, int32_t position, int32_t head) {
  const Extras& extras = s.shape().extras;
  const int32_t dim = s.shape().head_dim, value_dim = s.shape().value_dim();
  const float log2_e = 0x1.715476p+0f;
  const float factor = (1.0f / std::sqrt(static_cast<float>(dim))) * log2_e;
  const float cap = extras.soft_cap * log2_e;
  const auto exp2 = [](float x) { return plain::Exp2(plain::Set1(x)).lane[0]; };
  float m = 0, l = 0;
  std::vector<float> o(value_dim);
  const auto fold = [&](float next_m, float next_l, const std::vector<float>& next) {
    if (l == 0.0f) {
      m = next_m;
      l = next_l;
      o = next;
      return;
    }
    const float both = std::max(m, next_m), a = exp2(m - both), b = exp2(next_m - both);
    m = both;
    l = std::fma(l, a, next_l * b);
    for (int32_t d = 0; d < value_dim; ++d) o[d] = std::fma(o[d], a, next[d] * b);
  };
  for (int32_t begin = 0; begin <= position; begin += kSplit) {
    std::vector<int32_t> seen;
    for (int32_t t = begin; t < begin + kSplit; ++t) {
      if (extras.Sees(position, t)) seen.push_back(t);
    }
    if (seen.empty()) continue;
    std::vector<float> p, next(value_dim, 0.0f);
    for (const int32_t t : seen) {
      float sum = 0.0f;
      for (int32_t d = 0; d < dim; ++d) {
        sum = std::fma(s.QueryRow(position, head)[d] * factor, s.CachedKey(t)[d], sum);
      }
      if (cap > 0) sum = cap * plain::Tanh(plain::Set1(sum * (1.0f / cap))).lane[0];
      p.push_back(sum);
    }
    const float reference = std::ceil(*std::max_element(p.begin(), p.end()));
    plain::V lanes = plain::Zero();
    for (size_t i = 0; i < p.size(); ++i) {
      p[i] = Power(p[i], reference);
      lanes.lane[seen[i] % 16] += p[i];
      for (int32_t d = 0; d < value_dim; ++d) {
        next[d] = std::fma(p[i], s.CachedValue(seen[i])[d], next[d]);
      }
    }
    fold(reference, plain::ReduceAdd(lanes), next);
  }
  if (extras.sinks) fold(s.sink(head) * log2_e, 1.0f, std::vector<float>(value_dim, 0.0f));
  const float inverse = 1.0f / l;
  for (float& x : o) x *= inverse;
  return o;
}

// What it approximates.
inline std::vector<double> InDouble(const Sequence& s, int32_t position, int32_t head) {
  const Extras& extras = s.shape().extras;
  const int32_t dim = s.shape().head_dim;
  const int32_t value_dim = s.shape().value_dim();
  std::vector<double> weight(position + 1), out(value_dim, 0.0);
  double sum = extras.sinks ? std::exp(static_cast<double>(s.sink(head))) : 0;
  for (int32_t t = 0; t <= position; ++t) {
    if (!extras.Sees(position, t)) continue;
    double dot = 0;
    for (int32_t d = 0; d < dim; ++d) {
      dot += static_cast<double>(s.QueryRow(position, head)[d]) *
             static_cast<double>(s.CachedKey(t)[d]);
    }
    dot /= std::sqrt(static_cast<double>(dim));
    const double cap = extras.soft_cap;
    sum += weight[t] = std::exp(cap > 0 ? cap * std::tanh(dot / cap) : dot);
  }
  for (int32_t t = 0; t <= position; ++t) {
    for (int32_t d = 0; d < value_dim; ++d) {
      out[d] += weight[t] / sum * static_cast<double>(s.CachedValue(t)[d]);
    }
  }
  return out;
}

inline void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i])) << "element " << i;
  }
}

inline std::string SchemeName(const KvScheme& scheme) {
  const char* names[] = {"f32", "f16", "bf16", "q8", "q4"};
  const std::string name = names[static_cast<int>(scheme.codec)];
  return scheme.affine() ? name + "by" + std::to_string(scheme.group) : name;
}

}  // namespace lockstep::kernels
