// Attention against the multiply-adds and bytes that this core can do at most, measured in the same
// run: a chunk of a prompt, and one token over a long context that no cache holds. CPU time, since
// others may share the core; the best of a few runs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "apps/bench/machine_limits.h"
#include "kernels/kernels.h"
#include "platform/buffer.h"

namespace lockstep {
namespace {

using kernels::AttentionQuery;
using kernels::KvCodec;
using kernels::KvLayer;
using kernels::KvScheme;

struct Work {
  const char* name;
  int32_t head_dim, heads, kv_heads, context, tokens;
  KvScheme scheme;
};

constexpr KvScheme kF32{KvCodec::kF32, 0}, kF16{KvCodec::kF16, 0}, kBF16{KvCodec::kBF16, 0},
    kQ8{KvCodec::kQ8, 32}, kQ4{KvCodec::kQ4, 32};

constexpr Work kWorks[] = {
    {"chunk", 64, 3, 3, 0, 512, kBF16},     {"chunk", 64, 3, 3, 0, 512, kF32},
    {"chunk", 64, 3, 3, 1536, 512, kBF16},  {"chunk", 64, 3, 3, 1536, 512, kQ8},
    {"chunk", 64, 3, 3, 1536, 512, kQ4},    {"chunk", 128, 4, 2, 1536, 512, kBF16},
    {"chunk", 64, 1, 3, 0, 32, kBF16},      {"decode", 64, 3, 3, 2047, 1, kBF16},
    {"decode", 64, 3, 3, 2047, 1, kF32},    {"decode", 64, 3, 3, 2047, 1, kF16},
    {"decode", 64, 3, 3, 2047, 1, kQ8},     {"decode", 64, 3, 3, 2047, 1, kQ4},
    {"decode", 64, 1, 9, 2047, 1, kBF16},   {"decode", 128, 4, 8, 2047, 1, kBF16},
    {"decode", 128, 8, 8, 16383, 1, kBF16}, {"decode", 128, 8, 8, 16383, 1, kQ8},
    {"decode", 64, 3, 3, 127, 1, kBF16},
};

const char* CodecName(KvCodec codec) {
  const char* names[] = {"f32", "f16", "bf16", "q8", "q4"};
  return names[static_cast<int>(codec)];
}

// Of caches that calls take in turn, so that a token's comes from memory as a model's layers do.
constexpr int64_t kColdBytes = int64_t{128} << 20;

// Seconds of one call over all KV heads.
double Measure(const kernels::AttentionKernels& attention, const Work& work) {
  const int32_t length = work.context + work.tokens;
  const int32_t blocks = (length + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
  const int64_t stride = kernels::KvBlockBytes(work.kv_heads, work.head_dim, work.scheme);
  const int64_t copies = work.tokens > 1 ? 1 : kColdBytes / (blocks * stride) + 1;
  auto cache = Buffer::Allocate(static_cast<size_t>(copies * blocks * stride), "benchmark");
  auto scratch =
      Buffer::Allocate(kernels::AttentionScratchBytes(work.head_dim, work.heads), "benchmark");
  if (!cache.ok() || !scratch.ok()) return 0;
  KvLayer layer{cache->data(), stride, work.kv_heads, work.head_dim, work.scheme};
  std::vector<int32_t> table(blocks);
  for (int32_t b = 0; b < blocks; ++b) table[b] = blocks - 1 - b;

  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  const int64_t row = int64_t{work.kv_heads} * work.heads * work.head_dim;
  std::vector<float> q(work.tokens * row), out(q.size()), k(work.head_dim), v(work.head_dim);
  for (float& x : q) x = normal(random);
  for (int32_t p = 0; p < length; ++p) {
    for (int32_t h = 0; h < work.kv_heads; ++h) {
      for (float& x : k) x = normal(random);
      for (float& x : v) x = normal(random);
      attention.append(layer, table.data(), p, h, k.data(), v.data());
    }
  }

  for (int64_t c = 1; c < copies; ++c) {
    std::memcpy(cache->data() + c * blocks * stride, cache->data(), blocks * stride);
  }
  int64_t copy = 0;
  double best = 1e9;
  for (int run = 0; run < 7; ++run) {
    const int repeat = work.tokens > 64 ? 1 : 40;
    const double start = bench::ThreadSeconds();
    for (int i = 0; i < repeat; ++i) {
      copy = (copy + 1) % copies;
      layer.data = cache->data() + copy * blocks * stride;
      for (int32_t h = 0; h < work.kv_heads; ++h) {
        const int64_t at = int64_t{h} * work.heads * work.head_dim;
        const AttentionQuery query{q.data() + at,
                                   row,
                                   work.tokens,
                                   work.heads,
                                   work.context,
                                   h,
                                   1.0f / std::sqrt(static_cast<float>(work.head_dim)),
                                   0,
                                   0,
                                   0.0f,
                                   nullptr};
        attention.attend(layer, table.data(), query, out.data() + at, row, scratch->data());
      }
    }
    best = std::min(best, (bench::ThreadSeconds() - start) / repeat);
  }
  return best;
}

int Main() {
  const kernels::KernelTable& table = kernels::Table();
  const bench::Limits limits = bench::MeasureLimits(table.isa);
  const double bandwidth = bench::ReadBandwidth(size_t{128} << 20, 1);
  std::printf("%s; f32 multiply-adds %.1f G/s; reading memory %.1f GB/s\n", table.isa,
              limits.f32_macs_per_s * 1e-9, bandwidth * 1e-9);
  std::printf("%-7s %4s %5s %8s %7s %6s %5s | %10s %8s %9s %8s\n", "work", "dim", "heads",
              "kv heads", "context", "tokens", "codec", "us", "G MAC/s", "of peak", "GB/s");
  for (const Work& work : kWorks) {
    const double seconds = Measure(table.attention, work);
    const double first = work.context + 1, last = work.context + work.tokens;
    const double pairs = (first + last) / 2 * work.tokens * work.heads * work.kv_heads;
    const double macs = pairs * 2 * work.head_dim;
    const double bytes =
        last / kernels::kBlockTokens *
        static_cast<double>(kernels::KvBlockBytes(work.kv_heads, work.head_dim, work.scheme));
    std::printf("%-7s %4d %5d %8d %7d %6d %5s | %10.1f %8.1f %8.0f%% %8.1f\n", work.name,
                work.head_dim, work.heads, work.kv_heads, work.context, work.tokens,
                CodecName(work.scheme.codec), seconds * 1e6, macs / seconds * 1e-9,
                100 * macs / seconds / limits.f32_macs_per_s, bytes / seconds * 1e-9);
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main() { return lockstep::Main(); }
