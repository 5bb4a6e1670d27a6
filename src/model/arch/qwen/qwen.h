// The Qwen architectures: Llama's shape with biases on q, k and v (Qwen 2), or with heads of their
// own size that are normed before rotation (Qwen 3),
// and layers that may be mixtures of experts.
//
// Source: Yang et al., "Qwen2 Technical Report" (2024) and "Qwen3 Technical Report" (2025).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/arch/qwen/config.h"
#include "model/decoder_model.h"
#include "model/layers/gated_ffn.h"
#include "model/layers/mixture.h"
#include "model/layers/self_attention.h"

namespace lockstep::qwen {

struct Layer {
  RmsNorm attention_norm;
  SelfAttention attention;
  RmsNorm ffn_norm;
  GatedFfn ffn;  // or, where there are experts,
  Mixture mixture;
};

Result<std::unique_ptr<Model>> LoadQwen2(std::shared_ptr<const Checkpoint> checkpoint,
                                         const LoadOptions& options);
Result<std::unique_ptr<Model>> LoadQwen3(std::shared_ptr<const Checkpoint> checkpoint,
                                         const LoadOptions& options);

Result<std::unique_ptr<Model>> LoadQwen3Moe(std::shared_ptr<const Checkpoint> checkpoint,
                                            const LoadOptions& options);

class QwenModel : public DecoderModel {
 public:
  QwenModel(ModelInfo info, const Config& config, DecoderEnds ends, std::vector<Layer> layers)
      : DecoderModel(std::move(info), config.dims, std::move(ends)),
        frequencies_(config.rope),
        mixture_(config.mixture),
        layers_(std::move(layers)) {}

  Status Prepare(const BatchLimits& limits, Compute* compute) override;
  void Forward(const Batch& batch, std::span<const kernels::KvLayer> kv, Compute* compute) override;

 private:
  const RopeFrequencies frequencies_;
  const MixtureDims mixture_;
  const std::vector<Layer> layers_;
  RopeTable rope_;
  MixtureBuffers m_;
  AttentionPlan plan_;
};

}  // namespace lockstep::qwen
