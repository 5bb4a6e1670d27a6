#include "model/arch/qwen/qwen.h"

#include <cmath>

#include "model/load/decoder_loader.h"

namespace lockstep::qwen {

void QwenModel::Forward(const Batch& batch, std::span<const kernels::KvLayer> kv,
                        Compute* compute) {
  const int32_t tokens = batch.size();
  rope_.Fill(frequencies_, batch.positions, compute);
  plan_.Build(batch, compute->threads());
  ends_.embedding.Lookup(batch.tokens, compute, b_.x, b_.x_stride);

  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    layer.attention_norm.Apply(b_.x, b_.x_stride, tokens, compute, &b_.normed);
    layer.attention.Run({&batch, &plan_, &rope_, &kv[l]}, &b_, compute);
    const Product out[] = {{&layer.attention.out, b_.x, b_.x_stride, true}};
    Multiply(b_.attended, tokens, out, compute);

    layer.ffn_norm.Apply(b_.x, b_.x_stride, tokens, compute, &b_.normed);
    if (!layer.mixture.experts.empty()) {
      layer.mixture.Run(tokens, &m_, &b_, compute);
      continue;
    }
    layer.ffn.Run(tokens, &b_, compute);
    const Product down[] = {{&layer.ffn.down, b_.x, b_.x_stride, true}};
    Multiply(b_.gated, tokens, down, compute);
  }
}

Status QwenModel::Prepare(const BatchLimits& limits, Compute* compute) {
  const AttentionShape shape = AttentionOf(static_cast<float>(1.0 / std::sqrt(dims_.head_dim)));
  DecoderNeeds needs;
  needs.AddReaderOfNormed(ends_.head);
  for (const Layer& layer : layers_) {
    needs.Add(layer.attention, shape);
    layer.mixture.experts.empty() ? needs.Add(layer.ffn) : needs.Add(layer.mixture);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      b_, DecoderBuffers::Allocate(&arena_, limits.max_tokens, dims_, needs, false));
  if (mixture_.experts > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        m_, MixtureBuffers::Allocate(&arena_, limits.max_tokens, dims_, mixture_, needs));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(rope_,
                            RopeTable::Allocate(&arena_, limits.max_tokens, dims_.head_dim / 2));
  LOCKSTEP_ASSIGN_OR_RETURN(plan_, AttentionPlan::Allocate(&arena_, shape, limits,
                                                           dims_.max_context, compute->threads()));
  return compute->ReserveScratch(needs.scratch);
}

namespace {

Result<std::unique_ptr<Model>> Load(std::shared_ptr<const Checkpoint> checkpoint,
                                    const LoadOptions& options, const Generation& generation) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Config config, ReadConfig(*checkpoint, generation));
  LOCKSTEP_ASSIGN_OR_RETURN(DecoderLoader loader,
                            DecoderLoader::Create(checkpoint, options, config.dims, {}));
  LOCKSTEP_ASSIGN_OR_RETURN(DecoderEnds ends, loader.LoadEnds());
  std::vector<Layer> layers(config.dims.layers);
  for (int32_t l = 0; l < config.dims.layers; ++l) {
    Layer& layer = layers[l];
    LOCKSTEP_ASSIGN_OR_RETURN(layer.attention_norm,
                              loader.LoadNorm(l, "input_layernorm", "attn_norm"));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.attention,
                              loader.LoadAttention(l, {.qkv_bias = config.qkv_bias,
                                                       .out_bias = config.out_bias,
                                                       .head_norms = generation.head_norms}));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.ffn_norm,
                              loader.LoadNorm(l, "post_attention_layernorm", "ffn_norm"));
    if (config.sparse[l]) {
      LOCKSTEP_ASSIGN_OR_RETURN(layer.mixture, loader.LoadMixture(l, Gate::kSilu, config.mixture));
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(layer.ffn, loader.LoadFfn(l, Gate::kSilu, false));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(ModelInfo info, loader.Finish(generation.gguf));
  info.kv_layers.assign(layers.size(), {config.dims.kv_heads, config.dims.head_dim});
  return std::unique_ptr<Model>(
      new QwenModel(std::move(info), config, std::move(ends), std::move(layers)));
}

}  // namespace

Result<std::unique_ptr<Model>> LoadQwen2(std::shared_ptr<const Checkpoint> checkpoint,
                                         const LoadOptions& options) {
  return Load(std::move(checkpoint), options, kQwen2);
}

Result<std::unique_ptr<Model>> LoadQwen3(std::shared_ptr<const Checkpoint> checkpoint,
                                         const LoadOptions& options) {
  return Load(std::move(checkpoint), options, kQwen3);
}

Result<std::unique_ptr<Model>> LoadQwen3Moe(std::shared_ptr<const Checkpoint> checkpoint,
                                            const LoadOptions& options) {
  return Load(std::move(checkpoint), options, kQwen3Moe);
}

}  // namespace lockstep::qwen
