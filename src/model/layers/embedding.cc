#include "model/layers/embedding.h"

#include "model/layers/activations.h"

namespace lockstep {
namespace {

constexpr int32_t kTokensWorthSharing = 16;

}  // namespace

void Embedding::Lookup(std::span<const TokenId> tokens, Compute* compute, float* out,
                       int64_t stride) const {
  ForRows(compute, static_cast<int32_t>(tokens.size()), kTokensWorthSharing,
          [&](int32_t first, int32_t last) {
            for (int32_t i = first; i < last; ++i) {
              float* row = out + i * stride;
              quant::ExpandRow(table_, tokens[i], row);
              if (factor_ != 1.0f) compute->kernels().elementwise.scale(factor_, table_.k, row);
            }
          });
}

}  // namespace lockstep
