#include "model/arch/llama/llama.h"

#include <algorithm>
#include <cmath>

namespace lockstep::llama {

void LlamaModel::Forward(const Batch& batch, std::span<const kernels::KvLayer> kv,
                         Compute* compute) {
  const int32_t tokens = batch.size();
  const int64_t x_stride = PaddedOutputs(config_.d_model);
  const int64_t q_stride = PaddedOutputs(config_.heads * config_.head_dim);
  const int64_t kv_stride = PaddedOutputs(config_.kv_heads * config_.head_dim);
  rope_.Fill(config_.rope, batch.positions, compute);
  plan_.Build(batch, compute->threads());
  weights_.embedding.Lookup(batch.tokens, compute, x_, x_stride);

  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    const Layer& layer = weights_.layers[l];
    layer.attention_norm.Apply(x_, x_stride, tokens, compute, &normed_);
    const Product qkv[] = {
        {&layer.q, q_, q_stride}, {&layer.k, k_, kv_stride}, {&layer.v, v_, kv_stride}};
    Multiply(normed_, tokens, qkv, compute);
    Attend(batch, plan_, rope_, kv[l], 0, {q_, k_, v_, q_stride, kv_stride}, attended_.f32,
           attended_.stride, compute);
    attended_.Quantize(tokens, compute);
    const Product out[] = {{&layer.out, x_, x_stride, true}};
    Multiply(attended_, tokens, out, compute);

    layer.ffn_norm.Apply(x_, x_stride, tokens, compute, &normed_);
    MultiplyGated(normed_, tokens, layer.gate, layer.up, gated_.f32, up_, compute);
    gated_.Quantize(tokens, compute);
    const Product down[] = {{&layer.down, x_, x_stride, true}};
    Multiply(gated_, tokens, down, compute);
  }
}

void LlamaModel::Logits(const Batch& batch, int32_t begin, int32_t count, Compute* compute,
                        float* logits, int64_t stride) {
  const std::span<const int32_t> tokens = std::span(batch.logit_tokens).subspan(begin, count);
  weights_.final_norm.Gather(x_, PaddedOutputs(config_.d_model), tokens, compute, &normed_);
  const Product head[] = {{&weights_.head, logits, stride}};
  Multiply(normed_, count, head, compute);
}

Result<std::unique_ptr<Model>> LlamaModel::Load(std::shared_ptr<const Checkpoint> checkpoint,
                                                const LoadOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(Config config, ReadConfig(*checkpoint));
  LOCKSTEP_ASSIGN_OR_RETURN(WeightLoader loader, WeightLoader::Create(checkpoint, options));
  LOCKSTEP_ASSIGN_OR_RETURN(Weights weights, LoadWeights(config, *checkpoint, &loader));
  std::unique_ptr<LlamaModel> model(new LlamaModel(std::move(config), std::move(weights)));
  const Config& c = model->config_;
  ModelInfo& info = model->info_;
  info.architecture = "llama";
  info.vocab_size = c.vocab_size;
  info.d_model = c.d_model;
  info.max_context = c.max_context;
  info.kv_layers.assign(c.layers, KvShape{c.kv_heads, c.head_dim});
  info.weight_bytes = loader.packed_bytes();
  info.multiply_adds = loader.multiply_adds();
  info.weights_hash = loader.hash();
  info.integer_products = loader.integer_products();
  return std::unique_ptr<Model>(std::move(model));
}

Status LlamaModel::Prepare(const BatchLimits& limits, Compute* compute) {
  const Config& c = config_;
  const int32_t rows = limits.max_tokens;
  const auto integer = [&](auto... members) {
    return std::any_of(weights_.layers.begin(), weights_.layers.end(),
                       [&](const Layer& layer) { return ((layer.*members).integer() || ...); });
  };
  const bool normed_quantized =
      integer(&Layer::q, &Layer::k, &Layer::v, &Layer::gate, &Layer::up) || weights_.head.integer();
  const int32_t q_outputs = PaddedOutputs(c.heads * c.head_dim);
  const int32_t kv_outputs = PaddedOutputs(c.kv_heads * c.head_dim);
  LOCKSTEP_ASSIGN_OR_RETURN(
      x_, arena_.Take<float>(size_t(rows) * PaddedOutputs(c.d_model), "activations"));
  LOCKSTEP_ASSIGN_OR_RETURN(normed_,
                            Activations::Allocate(&arena_, rows, c.d_model, normed_quantized));
  LOCKSTEP_ASSIGN_OR_RETURN(q_, arena_.Take<float>(size_t(rows) * q_outputs, "activations"));
  LOCKSTEP_ASSIGN_OR_RETURN(k_, arena_.Take<float>(size_t(rows) * kv_outputs, "activations"));
  LOCKSTEP_ASSIGN_OR_RETURN(v_, arena_.Take<float>(size_t(rows) * kv_outputs, "activations"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      attended_, Activations::Allocate(&arena_, rows, c.heads * c.head_dim, integer(&Layer::out)));
  LOCKSTEP_ASSIGN_OR_RETURN(gated_,
                            Activations::Allocate(&arena_, rows, c.d_ff, integer(&Layer::down)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      up_, arena_.Take<float>(size_t(rows) * PaddedOutputs(c.d_ff), "activations"));
  LOCKSTEP_ASSIGN_OR_RETURN(rope_, RopeTable::Allocate(&arena_, rows, c.head_dim / 2));
  const AttentionShape shape{c.heads, c.kv_heads, c.head_dim,
                             static_cast<float>(1.0 / std::sqrt(c.head_dim))};
  LOCKSTEP_ASSIGN_OR_RETURN(
      plan_, AttentionPlan::Allocate(&arena_, shape, limits, c.max_context, compute->threads()));

  size_t scratch = kernels::AttentionScratchBytes(c.head_dim, shape.group());
  scratch = std::max(scratch, kernels::GemmScratchBytes(weights_.head.matrix));
  for (const Layer& layer : weights_.layers) {
    for (const Linear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.out, &layer.gate, &layer.up, &layer.down}) {
      scratch = std::max(scratch, kernels::GemmScratchBytes(linear->matrix));
    }
  }
  return compute->ReserveScratch(scratch);
}

}  // namespace lockstep::llama
