// The Llama architecture: pre-norm decoder with rotary grouped-query attention and a gated
// feed-forward.
//
// Source: Touvron et al., "LLaMA" (2023) and "Llama 2" (2023); Grattafiori et al., "The Llama 3
// Herd of Models" (2024).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/arch/llama/config.h"
#include "model/decoder_model.h"
#include "model/layers/gated_ffn.h"
#include "model/layers/self_attention.h"

namespace lockstep::llama {

struct Layer {
  RmsNorm attention_norm;
  SelfAttention attention;
  RmsNorm ffn_norm;
  GatedFfn ffn;
};

class LlamaModel : public DecoderModel {
 public:
  static Result<std::unique_ptr<Model>> Load(std::shared_ptr<const Checkpoint> checkpoint,
                                             const LoadOptions& options);

  Status Prepare(const BatchLimits& limits, Compute* compute) override;
  void Forward(const Batch& batch, std::span<const kernels::KvLayer> kv, Compute* compute) override;

 private:
  LlamaModel(ModelInfo info, const Config& config, DecoderEnds ends, std::vector<Layer> layers)
      : DecoderModel(std::move(info), config.dims, std::move(ends)),
        frequencies_(config.rope),
        layers_(std::move(layers)) {}

  const RopeFrequencies frequencies_;
  const std::vector<Layer> layers_;
  RopeTable rope_;
  AttentionPlan plan_;
};

}  // namespace lockstep::llama
