#include "apps/bench/machine_limits.h"

#include <immintrin.h>
#include <time.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>
#include <thread>
#include <vector>

#include "platform/buffer.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kLoops = 4'000'000;

// The best of a few runs: others may share the core.
template <class Work>
double Best(Work work) {
  double best = 0;
  for (int run = 0; run < 5; ++run) best = std::max(best, work());
  return best;
}

// Twelve independent chains of one instruction, kept from being optimised away.
#define LOCKSTEP_CHAINS(type, zero, step)                                                        \
  type a = zero, b = zero, c = zero, d = zero, e = zero, f = zero, g = zero, h = zero, i = zero, \
       j = zero, k = zero, l = zero;                                                             \
  const double start = ThreadSeconds();                                                          \
  for (int64_t n = 0; n < kLoops; ++n) {                                                         \
    step(a) step(b) step(c) step(d) step(e) step(f) step(g) step(h) step(i) step(j) step(k)      \
        step(l)                                                                                  \
  }                                                                                              \
  const double seconds = ThreadSeconds() - start;                                                \
  return 12.0 * kLoops / seconds

// As several streams, each a contiguous part, which draw more than one.
uint64_t Sum(const std::byte* data, size_t bytes) {
  constexpr size_t kStreams = 4;
  const size_t part = bytes / kStreams;
  uint64_t sum[8] = {};
  for (size_t at = 0; at < part; at += sizeof(sum)) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      uint64_t line[8];
      std::memcpy(line, data + stream * part + at, sizeof(line));
      for (size_t i = 0; i < 8; ++i) sum[i] ^= line[i];
    }
  }
  return std::accumulate(std::begin(sum), std::end(sum), uint64_t{0});
}

}  // namespace

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
namespace {

#define LOCKSTEP_MADDUBS(x) asm volatile("vpmaddubsw %0, %0, %0" : "+x"(x));
#define LOCKSTEP_MADDWD(x) asm volatile("vpmaddwd %0, %0, %0" : "+x"(x));
#define LOCKSTEP_FMA(x) asm volatile("vfmadd231ps %0, %0, %0" : "+x"(x));

double Maddubs() { LOCKSTEP_CHAINS(__m256i, _mm256_setzero_si256(), LOCKSTEP_MADDUBS); }
double Maddwd() { LOCKSTEP_CHAINS(__m256i, _mm256_setzero_si256(), LOCKSTEP_MADDWD); }
double Fma() { LOCKSTEP_CHAINS(__m256, _mm256_setzero_ps(), LOCKSTEP_FMA); }

}  // namespace
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avxvnni")
namespace avxvnni {
namespace {

#define LOCKSTEP_VEX_DPBUSD(x) asm volatile("%{vex%} vpdpbusd %0, %0, %0" : "+x"(x));

double Dpbusd() { LOCKSTEP_CHAINS(__m256i, _mm256_setzero_si256(), LOCKSTEP_VEX_DPBUSD); }

}  // namespace
}  // namespace avxvnni
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vnni")
namespace avx512 {
namespace {

#define LOCKSTEP_DPBUSD(x) asm volatile("vpdpbusd %0, %0, %0" : "+v"(x));

double Dpbusd() { LOCKSTEP_CHAINS(__m512i, _mm512_setzero_si512(), LOCKSTEP_DPBUSD); }
double Fma() { LOCKSTEP_CHAINS(__m512, _mm512_setzero_ps(), LOCKSTEP_FMA); }

}  // namespace
}  // namespace avx512
#pragma GCC pop_options

double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Limits MeasureLimits(std::string_view isa) {
  if (isa == "avx512") {
    const double dots = 64 * Best(avx512::Dpbusd);
    return {dots, dots, 16 * Best(avx512::Fma)};
  }
  if (isa == "avxvnni") {
    const double dots = 32 * Best(avxvnni::Dpbusd);
    return {dots, dots, 8 * Best(avx2::Fma)};
  }
  if (isa == "avx2") {
    return {32 * Best(avx2::Maddubs), 16 * Best(avx2::Maddwd), 8 * Best(avx2::Fma)};
  }
  return {};
}

double ReadBandwidth(size_t bytes, int threads) {
  std::vector<Buffer> buffers;
  for (int t = 0; t < threads; ++t) {
    auto buffer = Buffer::Allocate(bytes, "benchmark");
    if (!buffer.ok()) return 0;
    std::fill(buffer->data(), buffer->data() + bytes, std::byte{1});
    buffers.push_back(std::move(*buffer));
  }
  // All read at the same time, and only what they manage together counts: threads that share a
  // memory take turns at being fast.
  constexpr int kSweeps = 8;
  double best = 0;
  std::chrono::steady_clock::time_point start;
  std::barrier begin(threads, [&]() noexcept { start = std::chrono::steady_clock::now(); });
  std::barrier end(threads, [&]() noexcept {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(bytes) * threads / seconds.count());
  });
  const auto read = [&](int t) {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      begin.arrive_and_wait();
      volatile uint64_t sink = Sum(buffers[t].data(), bytes);
      (void)sink;
      end.arrive_and_wait();
    }
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t) workers.emplace_back(read, t);
  read(0);
  for (std::thread& worker : workers) worker.join();
  return best;
}

}  // namespace lockstep::bench
