#include "quant/bytes.h"
#include "quant/format.h"

namespace lockstep::quant {
namespace {

using kernels::WeightCode;

void ExpandF32(const BlockRow& row, int64_t n, float* out) {
  std::memcpy(out, row.plane[0], n * 4);
}
void ExpandF16(const BlockRow& row, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = LoadF16(row.plane[0] + 2 * i);
}
void ExpandBf16(const BlockRow& row, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = LoadBf16(row.plane[0] + 2 * i);
}

constexpr Format kFormats[] = {
    {"F32", 1, {4}, ExpandF32, {.code = WeightCode::kF32}, nullptr},
    {"F16", 1, {2}, ExpandF16, {.code = WeightCode::kF16}, nullptr},
    {"BF16", 1, {2}, ExpandBf16, {.code = WeightCode::kBF16}, nullptr},
};

}  // namespace

std::span<const Format> FloatFormats() { return kFormats; }

}  // namespace lockstep::quant
