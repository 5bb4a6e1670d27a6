// PackedWeights: one weight matrix in the layout that the product kernels read (kernels/gemm.h),
// made once at load from a checkpoint's bytes, panel by panel, so that many threads can share the
// work and no second copy of the checkpoint is ever held.
//
// Its memory belongs to the arena it was given; immutable once packed; then thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/gemm.h"
#include "platform/buffer.h"
#include "quant/format.h"

namespace lockstep::quant {

// A matrix [n, k] as the checkpoint holds it: rows of blocks, row-major.
struct Source {
  const Format* format = nullptr;
  BlockRow first;  // row 0
  int32_t n = 0;
  int32_t k = 0;
  std::span<const int32_t> rows;  // when not empty: output i is the source's row rows[i]; else i

  BlockRow Row(int32_t output) const {
    const int64_t row = rows.empty() ? output : rows[output];
    BlockRow found;
    for (int32_t p = 0; p < kMaxPlanes; ++p) {
      if (first.plane[p] != nullptr) found.plane[p] = first.plane[p] + row * format->RowBytes(p, k);
    }
    return found;
  }
};

class PackedWeights {
 public:
  // Room in `arena` for `source`, not yet filled. With `f32`, quantised weights are expanded to
  // f32; 16-bit floats stay as they are, since the kernels widen them exactly. kInvalidArgument
  // when k is not a whole number of blocks.
  static Result<PackedWeights> Allocate(const Source& source, bool f32, Arena* arena);

  // Fills panels [begin, end) of the matrix that Allocate was asked for. Threads may fill different
  // panels at once.
  void PackPanels(const Source& source, int32_t begin, int32_t end);

  const kernels::PackedMatrix& matrix() const { return matrix_; }

 private:
  void PackIntegerPanel(const Source& source, int32_t panel, std::byte* out) const;
  void PackFloatPanel(const Source& source, int32_t panel, std::byte* out) const;

  kernels::PackedMatrix matrix_;
  std::byte* data_ = nullptr;
};

// Expands one row of `source` to f32: out [k].
void ExpandRow(const Source& source, int32_t row, float* out);

}  // namespace lockstep::quant
