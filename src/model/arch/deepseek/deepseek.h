// DeepSeek V3: attention over latents that all heads share, and mixtures of many small experts
// beside some that every token uses. Other models that call themselves by its name are of the same
// shape.
//
// Source: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/arch/deepseek/config.h"
#include "model/decoder_model.h"
#include "model/layers/gated_ffn.h"
#include "model/layers/latent_attention.h"
#include "model/layers/mixture.h"

namespace lockstep::deepseek {

struct Layer {
  RmsNorm attention_norm;
  LatentAttention attention;
  RmsNorm ffn_norm;
  GatedFfn ffn;  // or, where there are experts,
  Mixture mixture;
  GatedFfn shared;  // of d_shared, if there is one
};

Result<std::unique_ptr<Model>> LoadDeepseekV3(std::shared_ptr<const Checkpoint> checkpoint,
                                              const LoadOptions& options);

class DeepseekModel : public DecoderModel {
 public:
  DeepseekModel(ModelInfo info, const Config& config, DecoderEnds ends, std::vector<Layer> layers)
      : DecoderModel(std::move(info), config.dims, std::move(ends)),
        config_(config),
        layers_(std::move(layers)) {}

  Status Prepare(const BatchLimits& limits, Compute* compute) override;
  void Forward(const Batch& batch, std::span<const kernels::KvLayer> kv, Compute* compute) override;

 private:
  const Config config_;
  const std::vector<Layer> layers_;
  RopeTable rope_;
  AttentionPlan plan_;
  LatentAttention::Buffers latent_;
  MixtureBuffers m_;
  Activations shared_;          // [T, d_shared]
  float* shared_up_ = nullptr;  // [T, d_shared]
};

}  // namespace lockstep::deepseek
