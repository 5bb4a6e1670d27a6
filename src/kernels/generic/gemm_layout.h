// Where the parts of a packed matrix are, and how a product is cut into blocks. Shared by those who
// pack (quant) and those who multiply; plain arithmetic, the same on every instruction set.
//
// A panel holds 16 outputs. Integer formats, K-group by K-group in ascending k:
//   kU4   [4][16 outputs][4 bytes]: chunk c, output j, byte i holds the code of k = 4c + i in its
//   low
//         half and that of k = 16 + 4c + i in its high half (group 32 only)
//   kI8   [group / 4][16 outputs][4 codes], k ascending
//   then 16 scales and, with minimums, 16 minimums, f16 or f32.
// Float formats: [k][16 outputs], padded at the end to a multiple of 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm.h"

namespace lockstep::kernels {

constexpr size_t GroupCodeBytes(WeightCode code, int32_t group) {
  return static_cast<size_t>(group) * kPanel / (code == WeightCode::kU4 ? 2 : 1);
}

constexpr size_t GroupBytes(const PackedMatrix& w) {
  const size_t constants = kPanel * (w.f32_scales ? sizeof(float) : sizeof(uint16_t));
  return GroupCodeBytes(w.code, w.group) + constants * (w.has_min ? 2 : 1);
}

constexpr size_t FloatBytes(WeightCode code) { return code == WeightCode::kF32 ? 4 : 2; }

constexpr bool IsIntegerCode(WeightCode code) {
  return code == WeightCode::kU4 || code == WeightCode::kI8;
}

// What `panel_bytes` must be.
constexpr size_t PanelBytes(const PackedMatrix& w) {
  const size_t bytes = IsIntegerCode(w.code)
                           ? GroupBytes(w) * static_cast<size_t>(w.k / w.group)
                           : FloatBytes(w.code) * kPanel * static_cast<size_t>(w.k);
  return (bytes + 63) / 64 * 64;
}

// Rows that share one unpacking of a panel.
inline constexpr int32_t kRowBlock = 64;
// k's of a panel that are unpacked at a time, so that they stay in the first cache.
inline constexpr int32_t kDepthBlock = 256;

// Panels that may be unpacked side by side.
inline constexpr int32_t kPanelBlock = 4;

// One thread's scratch of gemm_int and gemm_float, in order; every part is a multiple of 64 bytes.
//   accumulators  f32 [kPanelBlock][kRowBlock][16]
//   unpacked      a depth block of kPanelBlock panels, at most 6 bytes a weight with its constants
//   corrections   int32 [kRowBlock][k / kActGroup], then f32 [kRowBlock][k / group]
//   codes         int16 [kRowBlock][k]: activations widened, where the instruction set wants that
constexpr size_t kAccumulatorBytes = sizeof(float) * kPanelBlock * kRowBlock * kPanel;
constexpr size_t kUnpackedBytes = size_t{6} * kPanelBlock * kPanel * kDepthBlock;

constexpr size_t CorrectionBytes(const PackedMatrix& w) {
  return sizeof(int32_t) * kRowBlock * static_cast<size_t>(w.k / kActGroup);
}

}  // namespace lockstep::kernels
