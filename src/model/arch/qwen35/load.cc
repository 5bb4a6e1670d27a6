// Weights of Qwen 3.5 from folders of Hugging Face and of MLX. The two differ in more than names:
// Hugging Face keeps weights of norms less 1 and the convolution as [channels, 1, taps], mlx-lm as
// they are and as [channels, taps, 1]. The convolution's shape tells which it is.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "base/real_math.h"
#include "model/arch/qwen35/qwen35.h"
#include "model/load/decoder_loader.h"

namespace lockstep::qwen35 {
namespace {

constexpr float kLargestLogRate = 80.0f;

bool IsMlx(const Checkpoint& checkpoint) {
  for (const TensorView& tensor : checkpoint.tensors()) {
    if (!tensor.name.ends_with(".linear_attn.conv1d.weight")) continue;
    return tensor.shape.size() == 3 && tensor.shape[2] == 1;
  }
  return false;
}

Result<std::vector<float>> LoadConv(const GatedDeltaDims& dims, bool mlx, const std::string& name,
                                    WeightLoader* weights) {
  const int32_t channels = dims.conv_size();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<float> by_channel,
                            weights->LoadTable(name, mlx ? channels * dims.taps : channels,
                                               mlx ? 1 : dims.taps, channels));
  std::vector<float> by_tap(by_channel.size());
  for (int32_t c = 0; c < channels; ++c) {
    for (int32_t j = 0; j < dims.taps; ++j) {
      by_tap[size_t(j) * channels + c] = by_channel[size_t(c) * dims.taps + j];
    }
  }
  return by_tap;
}

Result<GatedDelta> LoadDelta(const Config& config, int32_t l, bool mlx, DecoderLoader* loader) {
  const GatedDeltaDims& dims = config.delta;
  const int32_t d = config.dims.d_model;
  WeightLoader& weights = loader->weights();
  const auto name = [&](const char* part) {
    return loader->In(l, (std::string("linear_attn.") + part).c_str(), "");
  };
  const auto linear = [&](const char* part, int32_t n, int32_t k) {
    return weights.LoadLinear(name(part) + ".weight", n, k, {});
  };
  GatedDelta delta;
  delta.dims = dims;
  LOCKSTEP_ASSIGN_OR_RETURN(delta.qkv, linear("in_proj_qkv", dims.conv_size(), d));
  LOCKSTEP_ASSIGN_OR_RETURN(delta.z, linear("in_proj_z", dims.value_size(), d));
  LOCKSTEP_ASSIGN_OR_RETURN(delta.b, linear("in_proj_b", dims.v_heads, d));
  LOCKSTEP_ASSIGN_OR_RETURN(delta.a, linear("in_proj_a", dims.v_heads, d));
  LOCKSTEP_ASSIGN_OR_RETURN(delta.out, linear("out_proj", d, dims.value_size()));
  LOCKSTEP_ASSIGN_OR_RETURN(delta.conv, LoadConv(dims, mlx, name("conv1d.weight"), &weights));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<float> log_rate,
                            weights.LoadVector(name("A_log"), dims.v_heads));
  for (const float log : log_rate) {
    if (!(std::fabs(log) <= kLargestLogRate)) {
      return DataLoss(
          fmt::format("{}: tensor {} holds {}; expected -{} to {}", weights.checkpoint().path(),
                      name("A_log"), log, kLargestLogRate, kLargestLogRate),
          name("A_log"));
    }
    delta.decay_rate.push_back(RealExp(log));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(delta.dt_bias, weights.LoadVector(name("dt_bias"), dims.v_heads));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<float> norm,
                            weights.LoadVector(name("norm.weight"), dims.v_dim));
  delta.norm = RmsNorm(std::move(norm), config.dims.rms_eps);
  delta.q_norm = UnitNorm(dims.k_dim, 1.0 / std::sqrt(double{1} * dims.k_dim));
  delta.k_norm = UnitNorm(dims.k_dim, 1.0);
  return delta;
}

}  // namespace

Result<std::unique_ptr<Model>> Qwen35Model::Load(std::shared_ptr<const Checkpoint> checkpoint,
                                                 const LoadOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(Config config, ReadConfig(*checkpoint));
  const bool mlx = IsMlx(*checkpoint);
  LOCKSTEP_ASSIGN_OR_RETURN(DecoderLoader loader,
                            DecoderLoader::Create(checkpoint, options, config.dims,
                                                  {.hf_norm_offset = mlx ? 0.0f : 1.0f}));
  LOCKSTEP_ASSIGN_OR_RETURN(DecoderEnds ends, loader.LoadEnds());
  std::vector<Layer> layers(config.dims.layers);
  std::vector<KvShape> kv_layers;
  std::vector<int64_t> state_layers;
  for (int32_t l = 0; l < config.dims.layers; ++l) {
    Layer& layer = layers[l];
    layer.recurrent = config.recurrent[l];
    LOCKSTEP_ASSIGN_OR_RETURN(layer.attention_norm, loader.LoadNorm(l, "input_layernorm", ""));
    if (layer.recurrent) {
      LOCKSTEP_ASSIGN_OR_RETURN(layer.delta, LoadDelta(config, l, mlx, &loader));
      layer.cache = static_cast<int32_t>(state_layers.size());
      state_layers.push_back(config.delta.state_floats());
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(layer.attention,
                                loader.LoadAttention(l, {.qkv_bias = config.attention_bias,
                                                         .out_bias = config.attention_bias,
                                                         .head_norms = true,
                                                         .gated = true}));
      layer.cache = static_cast<int32_t>(kv_layers.size());
      kv_layers.push_back({config.dims.kv_heads, config.dims.head_dim});
    }
    LOCKSTEP_ASSIGN_OR_RETURN(layer.ffn_norm, loader.LoadNorm(l, "post_attention_layernorm", ""));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.ffn, loader.LoadFfn(l, Gate::kSilu, false));
  }
  // Of a model of text and images this is the part for text; and the layers that guess further
  // tokens are not for computing the next one.
  for (const char* prefix : {"model.visual.", "vision_tower.", "mtp.", "language_model.mtp."}) {
    loader.weights().IgnoreAll(prefix);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(ModelInfo info, loader.Finish("qwen35"));
  info.kv_layers = std::move(kv_layers);
  if (info.kv_layers.empty()) info.kv_groups.clear();
  info.state_layers = std::move(state_layers);
  return std::unique_ptr<Model>(
      new Qwen35Model(std::move(info), std::move(config), std::move(ends), std::move(layers)));
}

}  // namespace lockstep::qwen35
