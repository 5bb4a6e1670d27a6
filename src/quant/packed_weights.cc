#include "quant/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/half.h"
#include "kernels/generic/gemm_layout.h"

namespace lockstep::quant {
namespace {

using kernels::kPanel;
using kernels::PackedMatrix;
using kernels::WeightCode;

void StoreCodes(const Group (&groups)[kPanel], const PackedMatrix& w, std::byte* out) {
  const bool halves = w.code == WeightCode::kU4;
  const int32_t chunks = halves ? 4 : w.group / 4;
  for (int32_t c = 0; c < chunks; ++c) {
    for (int32_t j = 0; j < kPanel; ++j, out += 4) {
      uint32_t four;
      std::memcpy(&four, groups[j].codes + 4 * c, 4);
      if (halves) {
        uint32_t upper;
        std::memcpy(&upper, groups[j].codes + 16 + 4 * c, 4);
        four |= upper << 4;
      }
      std::memcpy(out, &four, 4);
    }
  }
}

// 16 constants, one an output, as f16 or f32.
void StoreConstants(const Group (&groups)[kPanel], float Group::* member, bool f32,
                    std::byte* out) {
  for (int32_t j = 0; j < kPanel; ++j) {
    const float value = groups[j].*member;
    const uint16_t half = F32ToF16(value);
    if (f32) {
      std::memcpy(out + j * 4, &value, 4);
    } else {
      std::memcpy(out + j * 2, &half, 2);
    }
  }
}

// Elements of `outputs` rows to [k][16]; a few k's at a time, so that what is written stays cached.
template <size_t kBytes>
void Interleave(const std::byte* const* rows, int32_t outputs, int32_t depth, std::byte* out) {
  constexpr int32_t kBlock = 64;
  for (int32_t first = 0; first < depth; first += kBlock) {
    const int32_t last = std::min(depth, first + kBlock);
    for (int32_t j = 0; j < outputs; ++j) {
      for (int32_t k = first; k < last; ++k) {
        std::memcpy(out + (size_t(k) * kPanel + j) * kBytes, rows[j] + size_t(k) * kBytes, kBytes);
      }
    }
  }
}

bool ConstantsFitF16(const Source& source) {
  const int64_t blocks = source.k / source.format->block_elements;
  for (int32_t row = 0; row < source.n; ++row) {
    if (!source.format->fits_f16(source.Row(row), blocks)) return false;
  }
  return true;
}

}  // namespace

Result<PackedWeights> PackedWeights::Allocate(const Source& source, bool f32, Arena* arena) {
  if (source.k % source.format->block_elements != 0) {
    return InvalidArgument("a row of " + std::to_string(source.k) +
                           " weights is no whole number of " + std::string(source.format->name) +
                           " blocks");
  }
  PackedWeights packed;
  packed.matrix_ = source.format->packed;
  if (f32 && source.format->integer()) packed.matrix_ = PackedMatrix{.code = WeightCode::kF32};
  if (source.format->fits_f16 != nullptr && packed.matrix_.has_min) {
    packed.matrix_.f32_scales = !ConstantsFitF16(source);
  }
  packed.matrix_.n = source.n;
  packed.matrix_.k = source.k;
  packed.matrix_.panel_bytes = kernels::PanelBytes(packed.matrix_);
  LOCKSTEP_ASSIGN_OR_RETURN(
      packed.data_, arena->Take<std::byte>(packed.matrix_.panel_bytes * packed.matrix_.panels(),
                                           "packed weights"));
  packed.matrix_.data = packed.data_;
  return packed;
}

void PackedWeights::PackPanels(const Source& source, int32_t begin, int32_t end) {
  for (int32_t panel = begin; panel < end; ++panel) {
    std::byte* out = data_ + panel * matrix_.panel_bytes;
    if (kernels::IsIntegerCode(matrix_.code)) {
      PackIntegerPanel(source, panel, out);
    } else {
      PackFloatPanel(source, panel, out);
    }
  }
}

void PackedWeights::PackIntegerPanel(const Source& source, int32_t panel, std::byte* out) const {
  const size_t code_bytes = kernels::GroupCodeBytes(matrix_.code, matrix_.group);
  const size_t constant_bytes = kPanel * (matrix_.f32_scales ? 4 : 2);
  const int32_t outputs = std::min(kPanel, source.n - panel * kPanel);
  BlockRow rows[kPanel];
  for (int32_t j = 0; j < outputs; ++j) rows[j] = source.Row(panel * kPanel + j);
  // Padding: a scale of zero makes whatever the codes are vanish.
  Group groups[kPanel] = {};
  for (int32_t g = 0; g < source.k / matrix_.group; ++g) {
    for (int32_t j = 0; j < outputs; ++j) source.format->unpack(rows[j], g, &groups[j]);
    StoreCodes(groups, matrix_, out);
    StoreConstants(groups, &Group::scale, matrix_.f32_scales, out + code_bytes);
    if (matrix_.has_min) {
      StoreConstants(groups, &Group::minimum, matrix_.f32_scales,
                     out + code_bytes + constant_bytes);
    }
    out += kernels::GroupBytes(matrix_);
  }
}

void PackedWeights::PackFloatPanel(const Source& source, int32_t panel, std::byte* out) const {
  const int32_t outputs = std::min(kPanel, source.n - panel * kPanel);  // the arena came zeroed
  const bool expand = source.format->packed.code != matrix_.code;
  std::vector<float> expanded(expand ? size_t(kPanel) * source.k : 0);
  const std::byte* rows[kPanel];
  for (int32_t j = 0; j < outputs; ++j) {
    const BlockRow row = source.Row(panel * kPanel + j);
    rows[j] = row.plane[0];
    if (expand) {
      float* values = expanded.data() + size_t(j) * source.k;
      source.format->expand(row, source.k / source.format->block_elements, values);
      rows[j] = reinterpret_cast<const std::byte*>(values);
    }
  }
  if (kernels::FloatBytes(matrix_.code) == 4) {
    Interleave<4>(rows, outputs, source.k, out);
  } else {
    Interleave<2>(rows, outputs, source.k, out);
  }
}

void ExpandRow(const Source& source, int32_t row, float* out) {
  source.format->expand(source.Row(row), source.k / source.format->block_elements, out);
}

}  // namespace lockstep::quant
