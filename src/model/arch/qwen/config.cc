#include "model/arch/qwen/config.h"

#include <fmt/format.h>

#include <string>

#include "model/load/decoder_config.h"

namespace lockstep::qwen {
namespace {

constexpr int32_t kMaxExperts = 4096;

Status CheckMixture(const std::string& file, const MixtureDims& m) {
  if (m.experts < 1 || m.experts > kMaxExperts || m.used < 1 || m.used > m.experts) {
    return DataLoss(fmt::format("{}: {} of {} experts a token; expected 1 to {} of at most {}",
                                file, m.used, m.experts, m.experts, kMaxExperts));
  }
  if (m.d_expert >= 1 && m.d_expert <= (1 << 20)) return OkStatus();
  return DataLoss(fmt::format("{}: the experts' feed-forward size is {}", file, m.d_expert));
}

Status ReadMixture(const GgufFile& gguf, const std::string& prefix, Config* c) {
  const std::string& file = gguf.path();
  const auto get = [&](const char* key) {
    return ReadSize(gguf.metadata(), file, prefix + "." + key);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(c->mixture.experts, get("expert_count"));
  LOCKSTEP_ASSIGN_OR_RETURN(c->mixture.used, get("expert_used_count"));
  LOCKSTEP_ASSIGN_OR_RETURN(c->mixture.d_expert, get("expert_feed_forward_length"));
  c->mixture.normalised = true;  // goes without saying
  c->sparse.assign(c->dims.layers, true);
  return CheckMixture(file, c->mixture);
}

Status ReadMixture(const HfConfig& hf, Config* c) {
  // transformers 5 calls it as other architectures do.
  const char* count = hf.Has("num_experts") ? "num_experts" : "num_local_experts";
  LOCKSTEP_ASSIGN_OR_RETURN(c->mixture.experts, ReadSize(hf, count));
  LOCKSTEP_ASSIGN_OR_RETURN(c->mixture.used, ReadSize(hf, "num_experts_per_tok"));
  LOCKSTEP_ASSIGN_OR_RETURN(c->mixture.d_expert, ReadSize(hf, "moe_intermediate_size"));
  LOCKSTEP_ASSIGN_OR_RETURN(c->mixture.normalised, hf.GetBoolOr("norm_topk_prob", false));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t step, ReadSizeOr(hf, "decoder_sparse_step", 1));
  if (step < 1) return hf.Error("decoder_sparse_step", "must be at least 1");
  for (int32_t l = 0; l < c->dims.layers; ++l) c->sparse[l] = (l + 1) % step == 0;
  if (hf.Has("mlp_only_layers")) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> dense, hf.GetI64Array("mlp_only_layers"));
    for (const int64_t l : dense) {
      if (l >= 0 && l < c->dims.layers) c->sparse[l] = false;
    }
  }
  return CheckMixture(hf.file(), c->mixture);
}

Result<Config> FromGguf(const GgufFile& gguf, const Generation& generation) {
  Config c;
  LOCKSTEP_ASSIGN_OR_RETURN(c.dims, ReadDims(gguf, generation.gguf));
  LOCKSTEP_ASSIGN_OR_RETURN(c.rope, ReadRope(gguf, generation.gguf, 10000.0, c.dims.head_dim));
  c.qkv_bias = generation.qkv_bias;
  c.sparse.resize(c.dims.layers);
  if (generation.experts) LOCKSTEP_RETURN_IF_ERROR(ReadMixture(gguf, generation.gguf, &c));
  return c;
}

Result<Config> FromHf(const HfConfig& hf, const Generation& generation) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool window, hf.GetBoolOr("use_sliding_window", false));
  if (window) return hf.Error("use_sliding_window", "true is not supported");
  Config c;
  LOCKSTEP_ASSIGN_OR_RETURN(c.dims, ReadDims(hf, {.head_dim = generation.head_dim}));
  LOCKSTEP_RETURN_IF_ERROR(ExpectActivation(hf, "hidden_act", "silu"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.rope, ReadRope(hf, c.dims.head_dim));
  c.qkv_bias = generation.qkv_bias;
  if (!generation.qkv_bias) {
    LOCKSTEP_ASSIGN_OR_RETURN(c.qkv_bias, hf.GetBoolOr("attention_bias", false));
    c.out_bias = c.qkv_bias;
  }
  c.sparse.resize(c.dims.layers);
  if (generation.experts) LOCKSTEP_RETURN_IF_ERROR(ReadMixture(hf, &c));
  return c;
}

}  // namespace

Result<Config> ReadConfig(const Checkpoint& checkpoint, const Generation& generation) {
  return checkpoint.gguf() != nullptr ? FromGguf(*checkpoint.gguf(), generation)
                                      : FromHf(*checkpoint.config(), generation);
}

}  // namespace lockstep::qwen
