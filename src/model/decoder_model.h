// DecoderModel: what models of stacked layers between an embedding and a head have in common. An
// architecture derives from it and writes Prepare and Forward.
//
// Thread-safety: as Model.
#pragma once

#include <cstdint>
#include <utility>

#include "model/layers/attention.h"
#include "model/layers/decoder_buffers.h"
#include "model/layers/decoder_dims.h"
#include "model/layers/embedding.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/model.h"

namespace lockstep {

// What stands before the first layer and after the last.
struct DecoderEnds {
  Embedding embedding;  // [vocab, d_model]
  RmsNorm final_norm;
  Linear head;  // [vocab, d_model]
};

class DecoderModel : public Model {
 public:
  const ModelInfo& info() const override { return info_; }
  int64_t activation_bytes() const override { return arena_.bytes(); }
  void Logits(const Batch& batch, int32_t begin, int32_t count, Compute* compute, float* logits,
              int64_t stride) override;

 protected:
  DecoderModel(ModelInfo info, const DecoderDims& dims, DecoderEnds ends)
      : info_(std::move(info)), dims_(dims), ends_(std::move(ends)) {}

  AttentionShape AttentionOf(float scale) const {
    return {dims_.heads, dims_.kv_heads, dims_.head_dim, scale};
  }

  ModelInfo info_;
  const DecoderDims dims_;
  const DecoderEnds ends_;
  Arena arena_;
  DecoderBuffers b_;  // of the step; Forward leaves the last layer's output in b_.x
};

}  // namespace lockstep
