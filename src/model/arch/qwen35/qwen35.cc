#include "model/arch/qwen35/qwen35.h"

#include <cmath>

namespace lockstep::qwen35 {

void Qwen35Model::Forward(const Batch& batch, std::span<const kernels::KvLayer> kv,
                          Compute* compute) {
  const int32_t tokens = batch.size();
  const int32_t state_group = static_cast<int32_t>(info_.kv_groups.size());
  rope_.Fill(config_.rope, batch.positions, compute);
  plan_.Build(batch, compute->threads());
  ends_.embedding.Lookup(batch.tokens, compute, b_.x, b_.x_stride);

  for (const Layer& layer : layers_) {
    layer.attention_norm.Apply(b_.x, b_.x_stride, tokens, compute, &b_.normed);
    if (layer.recurrent) {
      layer.delta.Run({&batch, state_group, states_[layer.cache]}, b_.normed, &delta_, compute);
      const Product out[] = {{&layer.delta.out, b_.x, b_.x_stride, true}};
      Multiply(delta_.out, tokens, out, compute);
    } else {
      layer.attention.Run({&batch, &plan_, &rope_, &kv[layer.cache]}, &b_, compute);
      const Product out[] = {{&layer.attention.out, b_.x, b_.x_stride, true}};
      Multiply(b_.attended, tokens, out, compute);
    }
    layer.ffn_norm.Apply(b_.x, b_.x_stride, tokens, compute, &b_.normed);
    layer.ffn.Run(tokens, &b_, compute);
    const Product down[] = {{&layer.ffn.down, b_.x, b_.x_stride, true}};
    Multiply(b_.gated, tokens, down, compute);
  }
}

Status Qwen35Model::Prepare(const BatchLimits& limits, Compute* compute) {
  const AttentionShape shape = AttentionOf(static_cast<float>(1.0 / std::sqrt(dims_.head_dim)));
  DecoderNeeds needs;
  bool delta_codes = false;
  needs.AddReaderOfNormed(ends_.head);
  for (const Layer& layer : layers_) {
    if (layer.recurrent) {
      needs.Add(layer.delta);
      delta_codes = delta_codes || layer.delta.out.integer();
    } else {
      needs.Add(layer.attention, shape);
    }
    needs.Add(layer.ffn);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      b_, DecoderBuffers::Allocate(&arena_, limits.max_tokens, dims_, needs, false));
  LOCKSTEP_ASSIGN_OR_RETURN(
      delta_, GatedDeltaBuffers::Allocate(&arena_, limits.max_tokens, config_.delta, delta_codes));
  LOCKSTEP_ASSIGN_OR_RETURN(rope_,
                            RopeTable::Allocate(&arena_, limits.max_tokens, config_.rope.half()));
  LOCKSTEP_ASSIGN_OR_RETURN(plan_, AttentionPlan::Allocate(&arena_, shape, limits,
                                                           dims_.max_context, compute->threads()));
  return compute->ReserveScratch(needs.scratch);
}

}  // namespace lockstep::qwen35
