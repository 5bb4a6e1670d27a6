#include "model/decoder_model.h"

#include <span>

namespace lockstep {

void DecoderModel::Logits(const Batch& batch, int32_t begin, int32_t count, Compute* compute,
                          float* logits, int64_t stride) {
  const std::span<const int32_t> tokens = std::span(batch.logit_tokens).subspan(begin, count);
  ends_.final_norm.Gather(b_.x, b_.x_stride, tokens, compute, &b_.normed);
  const Product head[] = {{&ends_.head, logits, stride}};
  Multiply(b_.normed, count, head, compute);
}

}  // namespace lockstep
