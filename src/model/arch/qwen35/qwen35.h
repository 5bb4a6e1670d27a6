// The Qwen 3.5 architecture, text only: layers of linear attention by the gated delta rule and,
// every few layers, one that sees all positions, whose output is gated and whose heads are rotated
// in part.
//
// Layers of the first kind keep a state, those of the second keys and values: two groups of the
// cache.
//
// Source: Yang et al., "Gated Delta Networks" (2024); transformers' and mlx-lm's models.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/arch/qwen35/config.h"
#include "model/decoder_model.h"
#include "model/layers/gated_ffn.h"
#include "model/layers/self_attention.h"

namespace lockstep::qwen35 {

struct Layer {
  bool recurrent = false;
  int32_t cache = 0;  // index among the layers that keep states, or keys and values
  RmsNorm attention_norm;
  GatedDelta delta;         // where it is recurrent
  SelfAttention attention;  // where it is not
  RmsNorm ffn_norm;
  GatedFfn ffn;
};

class Qwen35Model : public DecoderModel {
 public:
  static Result<std::unique_ptr<Model>> Load(std::shared_ptr<const Checkpoint> checkpoint,
                                             const LoadOptions& options);

  Status Prepare(const BatchLimits& limits, Compute* compute) override;
  void UseStates(std::span<const StateLayer> states) override {
    states_.assign(states.begin(), states.end());
  }
  void Forward(const Batch& batch, std::span<const kernels::KvLayer> kv, Compute* compute) override;

 private:
  Qwen35Model(ModelInfo info, Config config, DecoderEnds ends, std::vector<Layer> layers)
      : DecoderModel(std::move(info), config.dims, std::move(ends)),
        config_(std::move(config)),
        layers_(std::move(layers)) {}

  const Config config_;
  const std::vector<Layer> layers_;
  std::vector<StateLayer> states_;
  RopeTable rope_;
  AttentionPlan plan_;
  GatedDeltaBuffers delta_;
};

}  // namespace lockstep::qwen35
