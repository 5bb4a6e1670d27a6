// The Gemma 3 architecture, text only: layers that see a window of the last positions and, every
// few layers, one that sees all, each kind with a rotation of its own; norms before and after each
// branch and on the heads of q and k; a GELU gate; an embedding scaled by sqrt(d_model).
//
// The two kinds of layer keep their caches in groups of their own.
//
// Source: Gemma Team, "Gemma 3 Technical Report" (2025).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/arch/gemma3/config.h"
#include "model/decoder_model.h"
#include "model/layers/gated_ffn.h"
#include "model/layers/self_attention.h"

namespace lockstep::gemma3 {

struct Layer {
  RmsNorm attention_norm;
  SelfAttention attention;
  RmsNorm post_attention_norm;
  RmsNorm ffn_norm;
  GatedFfn ffn;
  RmsNorm post_ffn_norm;
};

class Gemma3Model : public DecoderModel {
 public:
  static Result<std::unique_ptr<Model>> Load(std::shared_ptr<const Checkpoint> checkpoint,
                                             const LoadOptions& options);

  Status Prepare(const BatchLimits& limits, Compute* compute) override;
  void Forward(const Batch& batch, std::span<const kernels::KvLayer> kv, Compute* compute) override;

 private:
  // What a step computes once for all layers of a kind.
  struct StepOfKind {
    RopeTable rope;
    AttentionPlan plan;
  };

  Gemma3Model(ModelInfo info, Config config, DecoderEnds ends, std::vector<Layer> layers)
      : DecoderModel(std::move(info), config.dims, std::move(ends)),
        config_(std::move(config)),
        layers_(std::move(layers)) {}

  const Config config_;
  const std::vector<Layer> layers_;
  std::vector<StepOfKind> steps_;  // parallel to config_.kinds
};

}  // namespace lockstep::gemma3
