#include "model/arch/gemma3/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "model/load/decoder_config.h"

namespace lockstep::gemma3 {
namespace {

constexpr double kGlobalBase = 1e6;
constexpr double kLocalBase = 1e4;
constexpr int32_t kPattern = 6;  // every sixth layer sees all positions
constexpr int32_t kLayersOf27B = 62;
// What config.json leaves out is as transformers has it.
constexpr DecoderDims kDefaults = {.vocab_size = 262208,
                                   .d_model = 2304,
                                   .layers = 26,
                                   .heads = 8,
                                   .kv_heads = 4,
                                   .head_dim = 256,
                                   .d_ff = 9216,
                                   .max_context = 131072,
                                   .tied_head = true};

std::vector<bool> EveryNthIsFull(int32_t layers, int32_t n) {
  std::vector<bool> sliding(layers);
  for (int32_t l = 0; l < layers; ++l) sliding[l] = (l + 1) % n != 0;
  return sliding;
}

// Gives every layer its kind, leaving out a kind that no layer is of.
void SetKinds(const std::vector<bool>& sliding, const Kind& full, const Kind& local, Config* c) {
  const bool any_local = std::find(sliding.begin(), sliding.end(), true) != sliding.end();
  const bool any_full = std::find(sliding.begin(), sliding.end(), false) != sliding.end();
  if (any_full) c->kinds.push_back(full);
  if (any_local) c->kinds.push_back(local);
  for (const bool is_local : sliding) c->kind_of.push_back(is_local && any_full ? 1 : 0);
}

Status RefuseF32(const GgufMetadata& metadata, const std::string& file, const std::string& key) {
  LOCKSTEP_ASSIGN_OR_RETURN(const float value, metadata.GetF32Or(key, 0.0f));
  if (value == 0.0f) return OkStatus();
  return Unimplemented(fmt::format("{}: {} is {}; a soft cap is not supported", file, key, value),
                       key);
}

Result<std::vector<bool>> SlidingLayers(const GgufMetadata& metadata, const std::string& file,
                                        int32_t layers) {
  const std::string key = "gemma3.attention.sliding_window_pattern";
  const GgufEntry* entry = metadata.Find(key);
  if (entry != nullptr && entry->type == GgufType::kArray) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<bool> sliding, metadata.GetBoolArray(key));
    if (static_cast<int32_t>(sliding.size()) == layers) return sliding;
    return DataLoss(
        fmt::format("{}: {} has {} entries for {} layers", file, key, sliding.size(), layers), key);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t pattern, ReadSizeOr(metadata, file, key, kPattern));
  if (pattern < 1) return DataLoss(file + ": " + key + " is 0", key);
  return EveryNthIsFull(layers, pattern);
}

Result<Config> FromGguf(const GgufFile& gguf) {
  const GgufMetadata& metadata = gguf.metadata();
  const std::string& file = gguf.path();
  Config c;
  LOCKSTEP_ASSIGN_OR_RETURN(c.dims, ReadDims(gguf, "gemma3"));
  LOCKSTEP_RETURN_IF_ERROR(RefuseF32(metadata, file, "gemma3.attn_logit_softcapping"));
  LOCKSTEP_RETURN_IF_ERROR(RefuseF32(metadata, file, "gemma3.final_logit_softcapping"));
  // The file does not say what scores are scaled by; of the known sizes one differs.
  const int32_t scalar =
      c.dims.layers == kLayersOf27B ? c.dims.d_model / c.dims.heads : c.dims.head_dim;
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));

  Kind full;
  LOCKSTEP_ASSIGN_OR_RETURN(full.rope, ReadRope(gguf, "gemma3", kLocalBase, c.dims.head_dim));
  Kind local;
  LOCKSTEP_ASSIGN_OR_RETURN(local.window,
                            ReadSizeOr(metadata, file, "gemma3.attention.sliding_window", 0));
  if (local.window == 0) {
    SetKinds(std::vector<bool>(c.dims.layers, false), full, local, &c);
    return c;
  }
  const std::string base_key = "gemma3.rope.freq_base_swa";
  LOCKSTEP_ASSIGN_OR_RETURN(const float base, metadata.GetF32Or(base_key, kLocalBase));
  if (!(base >= 1.0f)) return DataLoss(file + ": " + base_key + " must be at least 1", base_key);
  local.rope = RopeFrequencies(base, c.dims.head_dim);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<bool> sliding,
                            SlidingLayers(metadata, file, c.dims.layers));
  SetKinds(sliding, full, local, &c);
  return c;
}

Result<std::vector<bool>> SlidingLayers(const HfConfig& hf, int32_t layers) {
  if (hf.Has("layer_types")) return ReadLayerTypes(hf, layers, "sliding_attention");
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t pattern,
                            ReadSizeOr(hf, "sliding_window_pattern", kPattern));
  if (pattern < 1) return hf.Error("sliding_window_pattern", "must be at least 1");
  return EveryNthIsFull(layers, pattern);
}

Status ReadRopes(const HfConfig& hf, int32_t head_dim, Kind* full, Kind* local) {
  LOCKSTEP_ASSIGN_OR_RETURN(const double global_base, hf.GetF64Or("rope_theta", kGlobalBase));
  LOCKSTEP_ASSIGN_OR_RETURN(const double local_base,
                            hf.GetF64Or("rope_local_base_freq", kLocalBase));
  std::optional<HfConfig> of_full;
  std::optional<HfConfig> of_local;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto parameters, hf.GetObjectOr("rope_parameters"));
  if (parameters) {
    for (const std::string& key : parameters->Keys()) {
      if (key != "full_attention" && key != "sliding_attention") {
        return parameters->Error(key, "expected full_attention and sliding_attention here");
      }
    }
    LOCKSTEP_ASSIGN_OR_RETURN(of_full, parameters->GetObjectOr("full_attention"));
    LOCKSTEP_ASSIGN_OR_RETURN(of_local, parameters->GetObjectOr("sliding_attention"));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(of_full, hf.GetObjectOr("rope_scaling"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(full->rope, ReadRope(hf, of_full, global_base, head_dim));
  LOCKSTEP_ASSIGN_OR_RETURN(local->rope, ReadRope(hf, of_local, local_base, head_dim));
  return OkStatus();
}

Result<Config> FromHf(const HfConfig& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto nested, file.GetObjectOr("text_config"));
  const HfConfig& hf = nested ? *nested : file;
  for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (hf.Has(cap)) return hf.Error(cap, "a soft cap is not supported");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool both_ways,
                            hf.GetBoolOr("use_bidirectional_attention", false));
  if (both_ways) return hf.Error("use_bidirectional_attention", "true is not supported");
  LOCKSTEP_RETURN_IF_ERROR(ExpectActivation(hf, "hidden_activation", "gelu_pytorch_tanh"));
  Config c;
  LOCKSTEP_ASSIGN_OR_RETURN(c.dims, ReadDims(hf, kDefaults));
  LOCKSTEP_ASSIGN_OR_RETURN(c.attention_bias, hf.GetBoolOr("attention_bias", false));
  LOCKSTEP_ASSIGN_OR_RETURN(const double scalar, hf.GetF64Or("query_pre_attn_scalar", 256.0));
  if (!(scalar > 0.0)) return hf.Error("query_pre_attn_scalar", "must be above 0");
  c.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));

  Kind full;
  Kind local;
  LOCKSTEP_ASSIGN_OR_RETURN(local.window, ReadSizeOr(hf, "sliding_window", 4096));
  if (local.window < 1) return hf.Error("sliding_window", "must be at least 1");
  LOCKSTEP_RETURN_IF_ERROR(ReadRopes(hf, c.dims.head_dim, &full, &local));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<bool> sliding, SlidingLayers(hf, c.dims.layers));
  SetKinds(sliding, full, local, &c);
  return c;
}

}  // namespace

Result<Config> ReadConfig(const Checkpoint& checkpoint) {
  return checkpoint.gguf() != nullptr ? FromGguf(*checkpoint.gguf()) : FromHf(*checkpoint.config());
}

}  // namespace lockstep::gemma3
