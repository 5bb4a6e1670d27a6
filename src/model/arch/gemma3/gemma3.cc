#include "model/arch/gemma3/gemma3.h"

#include <cmath>

#include "model/load/decoder_loader.h"

namespace lockstep::gemma3 {

void Gemma3Model::Forward(const Batch& batch, std::span<const kernels::KvLayer> kv,
                          Compute* compute) {
  const int32_t tokens = batch.size();
  for (size_t kind = 0; kind < steps_.size(); ++kind) {
    steps_[kind].rope.Fill(config_.kinds[kind].rope, batch.positions, compute);
    steps_[kind].plan.Build(batch, compute->threads());
  }
  ends_.embedding.Lookup(batch.tokens, compute, b_.x, b_.x_stride);

  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const int32_t kind = config_.kind_of[l];
    layer.attention_norm.Apply(b_.x, b_.x_stride, tokens, compute, &b_.normed);
    layer.attention.Run({&batch, &steps_[kind].plan, &steps_[kind].rope, &kv[l], kind}, &b_,
                        compute);
    const Product out[] = {{&layer.attention.out, b_.branch, b_.x_stride}};
    Multiply(b_.attended, tokens, out, compute);
    layer.post_attention_norm.AddNormed(b_.branch, b_.x_stride, tokens, compute, b_.x);

    layer.ffn_norm.Apply(b_.x, b_.x_stride, tokens, compute, &b_.normed);
    layer.ffn.Run(tokens, &b_, compute);
    const Product down[] = {{&layer.ffn.down, b_.branch, b_.x_stride}};
    Multiply(b_.gated, tokens, down, compute);
    layer.post_ffn_norm.AddNormed(b_.branch, b_.x_stride, tokens, compute, b_.x);
  }
}

Status Gemma3Model::Prepare(const BatchLimits& limits, Compute* compute) {
  AttentionShape shape = AttentionOf(config_.attention_scale);
  DecoderNeeds needs;
  needs.AddReaderOfNormed(ends_.head);
  for (const Layer& layer : layers_) {
    needs.Add(layer.attention, shape);
    needs.Add(layer.ffn);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      b_, DecoderBuffers::Allocate(&arena_, limits.max_tokens, dims_, needs, true));
  for (const Kind& kind : config_.kinds) {
    StepOfKind step;
    LOCKSTEP_ASSIGN_OR_RETURN(step.rope,
                              RopeTable::Allocate(&arena_, limits.max_tokens, dims_.head_dim / 2));
    shape.window = kind.window;
    LOCKSTEP_ASSIGN_OR_RETURN(
        step.plan,
        AttentionPlan::Allocate(&arena_, shape, limits, dims_.max_context, compute->threads()));
    steps_.push_back(std::move(step));
  }
  return compute->ReserveScratch(needs.scratch);
}

Result<std::unique_ptr<Model>> Gemma3Model::Load(std::shared_ptr<const Checkpoint> checkpoint,
                                                 const LoadOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(Config config, ReadConfig(*checkpoint));
  LOCKSTEP_ASSIGN_OR_RETURN(
      DecoderLoader loader,
      DecoderLoader::Create(checkpoint, options, config.dims, {.hf_norm_offset = 1.0f}));
  LOCKSTEP_ASSIGN_OR_RETURN(DecoderEnds ends, loader.LoadEnds());
  ends.embedding.ScaleBy(static_cast<float>(std::sqrt(double{1} * config.dims.d_model)));
  std::vector<Layer> layers(config.dims.layers);
  for (int32_t l = 0; l < config.dims.layers; ++l) {
    Layer& layer = layers[l];
    LOCKSTEP_ASSIGN_OR_RETURN(layer.attention_norm,
                              loader.LoadNorm(l, "input_layernorm", "attn_norm"));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.attention,
                              loader.LoadAttention(l, {.qkv_bias = config.attention_bias,
                                                       .out_bias = config.attention_bias,
                                                       .head_norms = true}));
    LOCKSTEP_ASSIGN_OR_RETURN(
        layer.post_attention_norm,
        loader.LoadNorm(l, "post_attention_layernorm", "post_attention_norm"));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.ffn_norm,
                              loader.LoadNorm(l, "pre_feedforward_layernorm", "ffn_norm"));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.ffn, loader.LoadFfn(l, Gate::kGeluTanh, false));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.post_ffn_norm,
                              loader.LoadNorm(l, "post_feedforward_layernorm", "post_ffw_norm"));
  }
  // Of a model of text and images this is the part for text.
  for (const char* prefix : {"vision_tower.", "model.vision_tower.", "multi_modal_projector.",
                             "model.multi_modal_projector."}) {
    loader.weights().IgnoreAll(prefix);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(ModelInfo info, loader.Finish("gemma3"));
  info.kv_groups.clear();
  for (const Kind& kind : config.kinds) info.kv_groups.push_back({kind.window});
  for (const int32_t kind : config.kind_of) {
    info.kv_layers.push_back({config.dims.kv_heads, config.dims.head_dim, kind});
  }
  return std::unique_ptr<Model>(
      new Gemma3Model(std::move(info), std::move(config), std::move(ends), std::move(layers)));
}

}  // namespace lockstep::gemma3
