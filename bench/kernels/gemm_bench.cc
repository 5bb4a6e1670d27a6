// Matrix products against this machine's limits, one thread: for each shape, format and number of
// rows the time, and the share of the peak of multiply-adds and of the read bandwidth. The limits
// come from the same run; each figure is the best of several, in CPU time, since others may share
// the machine.
//
//   gemm_bench [isa [substring of a format [substring of a shape]]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "apps/bench/machine_limits.h"
#include "kernels/generic/gemm_layout.h"
#include "kernels/kernels.h"
#include "platform/buffer.h"

namespace lockstep::bench {
namespace {

using kernels::PackedMatrix;
using kernels::WeightCode;

struct Format {
  const char* name;
  PackedMatrix packed;
};
const Format kFormats[] = {
    {"q4_0", {.code = WeightCode::kU4, .group = 32, .zero = 8}},
    {"q4_1", {.code = WeightCode::kU4, .group = 32, .has_min = true}},
    {"q8_0", {.code = WeightCode::kI8, .group = 32}},
    {"q6_K", {.code = WeightCode::kI8, .group = 16, .f32_scales = true}},
    {"bf16", {.code = WeightCode::kBF16}},
    {"f32", {.code = WeightCode::kF32}},
};

struct Shape {
  int32_t k, n;
};
constexpr Shape kShapes[] = {{576, 576},   {576, 1536},  {1536, 576}, {576, 49152},
                             {2048, 2048}, {2048, 5632}, {5632, 2048}};
constexpr int32_t kRows[] = {1, 2, 4, 8, 32, 128, 512};

Buffer Allocate(size_t bytes) {
  auto buffer = Buffer::Allocate(bytes, "benchmark");
  if (!buffer.ok()) {
    std::fprintf(stderr, "%s\n", buffer.status().ToString().c_str());
    std::exit(1);
  }
  return std::move(*buffer);
}

// A model's worth of matrices of one shape, more than the caches hold, so that a product of few
// rows finds its weights in memory as in decoding.
struct Work {
  static constexpr size_t kMemory = size_t{96} << 20;

  PackedMatrix matrix;
  int32_t copies;
  Buffer weights, x, codes, scales, sums, out, scratch;

  Work(const Format& format, Shape shape) : matrix(format.packed) {
    matrix.n = shape.n;
    matrix.k = shape.k;
    matrix.panel_bytes = kernels::PanelBytes(matrix);
    const size_t bytes = matrix.panel_bytes * matrix.panels();
    copies = static_cast<int32_t>((kMemory + bytes - 1) / bytes);
    weights = Allocate(bytes * copies);
    for (size_t i = 0; i < bytes * copies; ++i) weights.data()[i] = std::byte(i * 7 % 59);
    constexpr size_t kMost = 512;
    x = Allocate(kMost * shape.k * sizeof(float));
    for (size_t i = 0; i < kMost * shape.k; ++i) {
      reinterpret_cast<float*>(x.data())[i] = static_cast<float>(i * 13 % 101) - 50.0f;
    }
    codes = Allocate(kMost * shape.k);
    scales = Allocate(kMost * shape.k / kernels::kActGroup * sizeof(float));
    sums = Allocate(kMost * shape.k / kernels::kActGroup * sizeof(int32_t));
    out = Allocate(kMost * shape.n * sizeof(float));
    scratch = Allocate(kernels::GemmScratchBytes(matrix));
  }

  kernels::QuantizedRows rows() {
    return {reinterpret_cast<int8_t*>(codes.data()), reinterpret_cast<float*>(scales.data()),
            reinterpret_cast<int32_t*>(sums.data()), matrix.k};
  }

  void Multiply(const kernels::KernelTable& table, int32_t rows_count, int32_t copy) {
    PackedMatrix w = matrix;
    w.data = weights.data() + static_cast<size_t>(copy) * w.panel_bytes * w.panels();
    const kernels::GemmRange range{0, rows_count, 0, w.panels()};
    auto* to = reinterpret_cast<float*>(out.data());
    const auto* from = reinterpret_cast<const float*>(x.data());
    if (kernels::IsIntegerCode(w.code)) {
      table.gemm.gemm_int(w, rows(), range, {}, to, w.n, scratch.data());
    } else {
      table.gemm.gemm_float(w, from, w.k, range, {}, to, w.n, scratch.data());
    }
  }
};

void Measure(const kernels::KernelTable& table, const Format& format, Shape shape,
             const Limits& limits, double bandwidth) {
  Work work(format, shape);
  table.gemm.quantize(reinterpret_cast<const float*>(work.x.data()), shape.k, 0, 512, work.rows());
  const double peak =
      kernels::IsIntegerCode(format.packed.code) ? limits.int8_macs_per_s : limits.f32_macs_per_s;
  for (const int32_t rows : kRows) {
    const double macs = 1.0 * rows * shape.k * shape.n;
    const double bytes = 1.0 * work.matrix.panel_bytes * work.matrix.panels();
    // Each call is timed by itself and finds weights that left the caches since it last had them;
    // the tenth part that is fastest was disturbed least.
    const auto calls = static_cast<int32_t>(std::clamp(2e10 / macs, 20.0, 2000.0));
    std::vector<double> times;
    for (int32_t call = 0; call < calls; ++call) {
      const double start = ThreadSeconds();
      work.Multiply(table, rows, call % work.copies);
      times.push_back(ThreadSeconds() - start);
    }
    std::nth_element(times.begin(), times.begin() + calls / 10, times.end());
    const double best = times[calls / 10];
    std::printf("%-7s %-5s %5d x %-6d rows %-4d %10.1f us %7.1f Gmac/s %5.1f %% of peak %6.1f GB/s",
                table.isa, format.name, shape.k, shape.n, rows, best * 1e6, macs / best * 1e-9,
                100 * macs / best / peak, bytes / best * 1e-9);
    std::printf(" %5.1f %% of read\n", 100 * bytes / best / bandwidth);
    std::fflush(stdout);
  }
}

}  // namespace

int Main(int argc, char** argv) {
  const char* isa = argc > 1 ? argv[1] : "";
  const char* format_part = argc > 2 ? argv[2] : "";
  const char* shape_part = argc > 3 ? argv[3] : "";
  const double one = ReadBandwidth(size_t{256} << 20, 1);
  const double two = ReadBandwidth(size_t{256} << 20, 2);
  std::printf("read 256 MiB a thread: %.1f GB/s with one, %.1f GB/s with two\n", one * 1e-9,
              two * 1e-9);
  for (const kernels::KernelTable* table : kernels::SupportedTables()) {
    if (std::strstr(table->isa, isa) == nullptr) continue;
    const Limits limits = MeasureLimits(table->isa);
    std::printf("%s: %.0f Gmac/s in 8 bits, %.0f in 16, %.0f in f32\n", table->isa,
                limits.int8_macs_per_s * 1e-9, limits.int16_macs_per_s * 1e-9,
                limits.f32_macs_per_s * 1e-9);
    for (const Format& format : kFormats) {
      if (std::strstr(format.name, format_part) == nullptr) continue;
      for (const Shape shape : kShapes) {
        const std::string name = std::to_string(shape.k) + "x" + std::to_string(shape.n);
        if (name.find(shape_part) == std::string::npos) continue;
        Measure(*table, format, shape, limits, one);
      }
    }
  }
  return 0;
}

}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::Main(argc, argv); }
