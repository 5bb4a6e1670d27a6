// Matrix products with packed weights: y[t][n] = sum over k of x[t][k] * w[n][k].
//
// One arithmetic whatever the number of rows: each output is one chain over K, in ascending order,
// fixed by the weight format; tiles run over rows and outputs only. So a row's result never depends
// on how many rows share the call, on the range of rows or panels, or on the instruction set.
//
//   integer formats (kU4, kI8): activations have a scale for each kActGroup consecutive k. For each
//   of
//     these activation groups h, in ascending order, the dot product of the codes is exact in
//     int32, and
//       acc = fma(float(dot - zero * sum_h), scale_w[n][g] * scale_x[t][h], acc)
//     where g is the weight group (16 or 32 wide) that holds h and sum_h the sum of the row's codes
//     in h. With minimums, after the last h of a weight group:
//       acc = fma(min_w[n][g], m, acc), m = the sum of scale_x[t][h] * float(sum_h) over its h
//   float formats (kF32, kBF16, kF16): acc = fma(x[t][k], float(w[n][k]), acc), from acc = +0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels {

inline constexpr int32_t kPanel = 16;     // outputs of a panel
inline constexpr int32_t kActGroup = 16;  // k's that share an activation scale (docs/numerics.md)

enum class WeightCode : uint8_t { kU4, kI8, kF32, kBF16, kF16 };

// A packed [n, k] matrix; a view, the bytes belong to quant::PackedWeights. Panels of kPanel
// outputs, the last one padded with zero weights; a panel is its K-groups in order, each the codes
// of all 16 outputs followed by their 16 scales and, with minimums, their 16 minimums (layout in
// quant/pack.h).
struct PackedMatrix {
  WeightCode code = WeightCode::kF32;
  int32_t n = 0;
  int32_t k = 0;      // integer formats: a multiple of kActGroup
  int32_t group = 0;  // integer formats: 16 or 32
  int32_t zero = 0;   // kU4 without minimums: subtracted from every code (8 for Q4_0)
  bool has_min = false;
  bool f32_scales = false;          // scales are f32 instead of f16
  const std::byte* data = nullptr;  // 64-byte aligned
  size_t panel_bytes = 0;

  int32_t panels() const { return (n + kPanel - 1) / kPanel; }
};

// Activations quantised per row and group of kActGroup: scale = absmax / 127, code =
// round-half-even of x / scale (as x * (127 / absmax)), 0 for a group of zeros. Row-major.
struct QuantizedRows {
  int8_t* codes = nullptr;  // [rows, k]
  float* scales = nullptr;  // [rows, k / kActGroup]
  int32_t* sums = nullptr;  // [rows, k / kActGroup]: sums of codes
  int32_t k = 0;
};

// What happens to a product before it is stored.
struct GemmEpilogue {
  const float* bias = nullptr;  // [n padded to 16]: y + bias
  bool add = false;             // out = out + y instead of out = y
};

// A share of a product: rows [row_begin, row_end) by panels [panel_begin, panel_end). Writes whole
// panels: `out` has room for panels() * 16 floats a row.
struct GemmRange {
  int32_t row_begin = 0;
  int32_t row_end = 0;
  int32_t panel_begin = 0;
  int32_t panel_end = 0;
};

struct GemmKernels {
  // Quantises rows [row_begin, row_end) of x [rows, k] (stride in floats).
  void (*quantize)(const float* x, int64_t x_stride, int32_t row_begin, int32_t row_end,
                   QuantizedRows out);

  // REQUIRES: w.code is kU4 or kI8. `scratch` has ScratchBytes(w) bytes, 64-byte aligned, one a
  // thread.
  void (*gemm_int)(const PackedMatrix& w, const QuantizedRows& x, const GemmRange& range,
                   const GemmEpilogue& epilogue, float* out, int64_t out_stride, void* scratch);

  // REQUIRES: w.code is kF32, kBF16 or kF16.
  void (*gemm_float)(const PackedMatrix& w, const float* x, int64_t x_stride,
                     const GemmRange& range, const GemmEpilogue& epilogue, float* out,
                     int64_t out_stride, void* scratch);
};

// Bytes of scratch that a thread needs to multiply by `w`, on any instruction set.
size_t GemmScratchBytes(const PackedMatrix& w);

}  // namespace lockstep::kernels
