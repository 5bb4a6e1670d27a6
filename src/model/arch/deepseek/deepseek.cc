#include "model/arch/deepseek/deepseek.h"

namespace lockstep::deepseek {

void DeepseekModel::Forward(const Batch& batch, std::span<const kernels::KvLayer> kv,
                            Compute* compute) {
  const int32_t tokens = batch.size();
  rope_.Fill(config_.rope, batch.positions, compute);
  plan_.Build(batch, compute->threads());
  ends_.embedding.Lookup(batch.tokens, compute, b_.x, b_.x_stride);

  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    layer.attention_norm.Apply(b_.x, b_.x_stride, tokens, compute, &b_.normed);
    layer.attention.Run(config_.latent, {&batch, &plan_, &rope_, &kv[l]}, &latent_, &b_, compute);
    const Product out[] = {{&layer.attention.out, b_.x, b_.x_stride, true}};
    Multiply(b_.attended, tokens, out, compute);

    layer.ffn_norm.Apply(b_.x, b_.x_stride, tokens, compute, &b_.normed);
    if (layer.mixture.experts.empty()) {
      layer.ffn.Run(tokens, &b_, compute);
      const Product down[] = {{&layer.ffn.down, b_.x, b_.x_stride, true}};
      Multiply(b_.gated, tokens, down, compute);
      continue;
    }
    layer.mixture.Run(tokens, &m_, &b_, compute);
    if (config_.d_shared == 0) continue;
    const GatedFfn& shared = layer.shared;
    MultiplyGated(b_.normed, tokens, shared.gate, shared.up, shared.activation, shared_.f32,
                  shared_up_, compute);
    shared_.Quantize(tokens, compute);
    const Product down[] = {{&shared.down, b_.x, b_.x_stride, true}};
    Multiply(shared_, tokens, down, compute);
  }
}

Status DeepseekModel::Prepare(const BatchLimits& limits, Compute* compute) {
  const AttentionShape shape = LatentShape(config_.latent, config_.scale);
  DecoderNeeds needs;
  LatentNeeds latent_needs;
  needs.AddReaderOfNormed(ends_.head);
  for (const Layer& layer : layers_) {
    latent_needs.Add(layer.attention, shape, &needs);
    if (layer.mixture.experts.empty()) {
      needs.Add(layer.ffn);
    } else {
      needs.Add(layer.mixture);
      if (config_.d_shared > 0) needs.Add(layer.shared);
    }
  }
  const int32_t tokens = limits.max_tokens;
  LOCKSTEP_ASSIGN_OR_RETURN(b_, DecoderBuffers::Allocate(&arena_, tokens, dims_, needs, false));
  LOCKSTEP_ASSIGN_OR_RETURN(
      latent_, LatentAttention::Buffers::Allocate(&arena_, tokens, config_.latent, latent_needs));
  if (config_.dense_layers < dims_.layers) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        m_, MixtureBuffers::Allocate(&arena_, tokens, dims_, config_.mixture, needs));
    if (config_.d_shared > 0) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          shared_, Activations::Allocate(&arena_, tokens, config_.d_shared, needs.gated_codes));
      LOCKSTEP_ASSIGN_OR_RETURN(shared_up_,
                                arena_.Take<float>(size_t(tokens) * shared_.stride, "activations"));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(rope_, RopeTable::Allocate(&arena_, tokens, config_.latent.rope / 2));
  LOCKSTEP_ASSIGN_OR_RETURN(plan_, AttentionPlan::Allocate(&arena_, shape, limits,
                                                           dims_.max_context, compute->threads()));
  return compute->ReserveScratch(needs.scratch);
}

}  // namespace lockstep::deepseek
