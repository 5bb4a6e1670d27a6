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
#include "model/layers/attention.h"
#include "model/layers/embedding.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/model.h"
#include "model/weight_loader.h"

namespace lockstep::llama {

struct Layer {
  RmsNorm attention_norm;
  Linear q;    // [heads * head_dim, d_model]
  Linear k;    // [kv_heads * head_dim, d_model]
  Linear v;    // [kv_heads * head_dim, d_model]
  Linear out;  // [d_model, heads * head_dim]
  RmsNorm ffn_norm;
  Linear gate;  // [d_ff, d_model]
  Linear up;    // [d_ff, d_model]
  Linear down;  // [d_model, d_ff]
};

struct Weights {
  Embedding embedding;  // [vocab, d_model]
  std::vector<Layer> layers;
  RmsNorm final_norm;
  Linear head;  // [vocab, d_model]
};

Result<Weights> LoadWeights(const Config& config, const Checkpoint& checkpoint,
                            WeightLoader* loader);

class LlamaModel : public Model {
 public:
  static Result<std::unique_ptr<Model>> Load(std::shared_ptr<const Checkpoint> checkpoint,
                                             const LoadOptions& options);

  const ModelInfo& info() const override { return info_; }
  Status Prepare(const BatchLimits& limits, Compute* compute) override;
  int64_t activation_bytes() const override { return arena_.bytes(); }
  void Forward(const Batch& batch, std::span<const kernels::KvLayer> kv, Compute* compute) override;
  void Logits(const Batch& batch, int32_t begin, int32_t count, Compute* compute, float* logits,
              int64_t stride) override;

 private:
  LlamaModel(Config config, Weights weights)
      : config_(std::move(config)), weights_(std::move(weights)) {}

  Config config_;
  Weights weights_;
  ModelInfo info_;

  // The buffers of a step; T rows each.
  Arena arena_;
  float* x_ = nullptr;    // [T, d_model], the residual stream
  Activations normed_;    // [T, d_model]
  float* q_ = nullptr;    // [T, heads * head_dim]
  float* k_ = nullptr;    // [T, kv_heads * head_dim]
  float* v_ = nullptr;    // [T, kv_heads * head_dim]
  Activations attended_;  // [T, heads * head_dim]
  Activations gated_;     // [T, d_ff]
  float* up_ = nullptr;   // [T, d_ff]
  RopeTable rope_;
  AttentionPlan plan_;
};

}  // namespace lockstep::llama
