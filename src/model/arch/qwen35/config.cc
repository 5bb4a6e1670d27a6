#include "model/arch/qwen35/config.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "model/load/decoder_config.h"

namespace lockstep::qwen35 {
namespace {

constexpr double kRotated = 0.25;       // of a head
constexpr int32_t kFullEvery = 4;       // every fourth layer sees all positions
constexpr int32_t kMaxHeads = 1 << 12;  // that no real model has
constexpr int32_t kMaxHeadSize = 1 << 12;

Status CheckDelta(const std::string& file, const GatedDeltaDims& d) {
  if (d.k_heads < 1 || d.v_heads < 1 || d.v_heads > kMaxHeads || d.v_heads % d.k_heads != 0) {
    return DataLoss(fmt::format("{}: {} value heads for {} key heads of linear attention", file,
                                d.v_heads, d.k_heads));
  }
  for (const int32_t size : {d.k_dim, d.v_dim}) {
    if (size >= 16 && size <= kMaxHeadSize && size % 16 == 0) continue;
    return Unimplemented(fmt::format(
        "{}: a head size of {} in linear attention; supported are multiples of 16 up to {}", file,
        size, kMaxHeadSize));
  }
  if (d.taps < 2 || d.taps > GatedDeltaDims::kMaxTaps) {
    return Unimplemented(fmt::format("{}: a convolution over {} tokens; supported are 2 to {}",
                                     file, d.taps, GatedDeltaDims::kMaxTaps));
  }
  return OkStatus();
}

Result<GatedDeltaDims> ReadDelta(const HfConfig& hf) {
  GatedDeltaDims d;
  LOCKSTEP_ASSIGN_OR_RETURN(d.k_heads, ReadSizeOr(hf, "linear_num_key_heads", 16));
  LOCKSTEP_ASSIGN_OR_RETURN(d.v_heads, ReadSizeOr(hf, "linear_num_value_heads", 32));
  LOCKSTEP_ASSIGN_OR_RETURN(d.k_dim, ReadSizeOr(hf, "linear_key_head_dim", 128));
  LOCKSTEP_ASSIGN_OR_RETURN(d.v_dim, ReadSizeOr(hf, "linear_value_head_dim", 128));
  LOCKSTEP_ASSIGN_OR_RETURN(d.taps, ReadSizeOr(hf, "linear_conv_kernel_dim", 4));
  LOCKSTEP_RETURN_IF_ERROR(CheckDelta(hf.file(), d));
  return d;
}

Result<std::vector<bool>> RecurrentLayers(const HfConfig& hf, int32_t layers) {
  if (hf.Has("layer_types")) return ReadLayerTypes(hf, layers, "linear_attention");
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t every,
                            ReadSizeOr(hf, "full_attention_interval", kFullEvery));
  if (every < 1) return hf.Error("full_attention_interval", "must be at least 1");
  std::vector<bool> recurrent(layers);
  for (int32_t l = 0; l < layers; ++l) recurrent[l] = (l + 1) % every != 0;
  return recurrent;
}

// The first dimensions of a head that are rotated. Newer files say it beside the rotary base.
Result<int32_t> RotatedDims(const HfConfig& hf, int32_t head_dim) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto parameters, hf.GetObjectOr("rope_parameters"));
  const bool inside = parameters && parameters->Has("partial_rotary_factor");
  const HfConfig& config = inside ? *parameters : hf;
  LOCKSTEP_ASSIGN_OR_RETURN(const double factor,
                            config.GetF64Or("partial_rotary_factor", kRotated));
  if (!(factor > 0.0 && factor <= 1.0)) {
    return config.Error("partial_rotary_factor", "must be above 0 and at most 1");
  }
  const int32_t dims = static_cast<int32_t>(head_dim * factor);
  if (dims >= 2 && dims % 2 == 0) return dims;
  return config.Error(
      "partial_rotary_factor",
      fmt::format("rotates {} of {} dimensions; expected an even number", dims, head_dim));
}

}  // namespace

Result<Config> ReadConfig(const Checkpoint& checkpoint) {
  const HfConfig& file = *checkpoint.config();
  LOCKSTEP_ASSIGN_OR_RETURN(const auto nested, file.GetObjectOr("text_config"));
  const HfConfig& hf = nested ? *nested : file;
  LOCKSTEP_RETURN_IF_ERROR(ExpectActivation(hf, "hidden_act", "silu"));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool gated, hf.GetBoolOr("attn_output_gate", true));
  if (!gated) return hf.Error("attn_output_gate", "false is not supported");
  Config c;
  LOCKSTEP_ASSIGN_OR_RETURN(const bool tied, file.GetBoolOr("tie_word_embeddings", false));
  LOCKSTEP_ASSIGN_OR_RETURN(c.dims, ReadDims(hf, {.head_dim = 256, .tied_head = tied}));
  LOCKSTEP_ASSIGN_OR_RETURN(c.delta, ReadDelta(hf));
  LOCKSTEP_ASSIGN_OR_RETURN(c.recurrent, RecurrentLayers(hf, c.dims.layers));
  LOCKSTEP_ASSIGN_OR_RETURN(c.attention_bias, hf.GetBoolOr("attention_bias", false));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t rotated, RotatedDims(hf, c.dims.head_dim));
  LOCKSTEP_ASSIGN_OR_RETURN(c.rope, ReadRope(hf, rotated));
  return c;
}

}  // namespace lockstep::qwen35
