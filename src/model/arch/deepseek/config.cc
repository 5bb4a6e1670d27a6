#include "model/arch/deepseek/config.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "model/load/decoder_config.h"

namespace lockstep::deepseek {
namespace {

constexpr const char* kGguf = "deepseek2";  // general.architecture, and the prefix of its keys
constexpr int32_t kGgufSigmoid = 2;         // of expert_gating_func
constexpr int32_t kMaxExperts = 4096;
constexpr int32_t kMaxRank = 1 << 16;
constexpr int32_t kMaxKey = 576;  // kernels/attention.h

std::string Key(const char* key) { return std::string(kGguf) + "." + key; }

Status CheckLatent(const std::string& file, const LatentDims& l) {
  const auto refuse = [&](const std::string& what) { return Unimplemented(file + ": " + what); };
  if (l.rank < 16 || l.rank % 16 != 0 || l.rope < 8 || l.rope % 8 != 0 || l.key() > kMaxKey) {
    return refuse(
        fmt::format("latents of {} and rotary keys of {} elements; supported are multiples "
                    "of 16 and of 8, up to {} together",
                    l.rank, l.rope, kMaxKey));
  }
  if (l.plain < 8 || l.plain % 8 != 0 || l.plain > kMaxRank) {
    return refuse(
        fmt::format("{} elements of a head that are not rotated; supported are multiples "
                    "of 8",
                    l.plain));
  }
  if (l.value < 16 || l.value % 16 != 0 || l.value > kMaxRank) {
    return refuse(
        fmt::format("a head's values have {} elements; supported are multiples of 16", l.value));
  }
  if (l.query_rank < 0 || l.query_rank > kMaxRank) {
    return refuse(fmt::format("a query's latent of {} elements", l.query_rank));
  }
  return OkStatus();
}

Status CheckMixture(const std::string& file, const Config& c) {
  const MixtureDims& m = c.mixture;
  const auto wrong = [&](const std::string& what) { return DataLoss(file + ": " + what); };
  if (m.experts < 1 || m.experts > kMaxExperts || m.used < 1 || m.used > m.experts) {
    return wrong(fmt::format("{} of {} experts a token; expected 1 to {} of at most {}", m.used,
                             m.experts, m.experts, kMaxExperts));
  }
  if (m.groups < 1 || m.groups > kMaxExpertGroups || m.experts % m.groups != 0 ||
      m.used_groups < 1 || m.used_groups > m.groups || (m.groups > 1 && m.experts / m.groups < 2) ||
      m.used > m.experts / m.groups * m.used_groups) {
    return wrong(
        fmt::format("{} experts of a token from {} of {} groups of {} experts; expected "
                    "groups of two at least, as many each, that hold them",
                    m.used, m.used_groups, m.groups, m.experts));
  }
  if (m.d_expert < 1 || m.d_expert > (1 << 20) || c.d_shared < 0 || c.d_shared > (1 << 20)) {
    return wrong(
        fmt::format("the experts' feed-forward sizes are {} and {}", m.d_expert, c.d_shared));
  }
  if (std::isfinite(m.scale)) return OkStatus();
  return wrong("the scale of the experts' weights is not finite");
}

// What attention's projections are of; in the cache there are no heads.
void SetDims(Config* c) {
  c->latent.heads = c->dims.heads;
  c->dims.head_dim = c->latent.query();
  c->dims.value_dim = c->latent.value;
  c->dims.kv_heads = 0;
}

// Out of range: -1, which CheckMixture refuses.
void SetShared(int32_t experts, Config* c) {
  const int64_t size = int64_t{experts} * c->mixture.d_expert;
  c->d_shared = size > (1 << 20) ? -1 : static_cast<int32_t>(size);
}

Status ReadMixture(const HfConfig& hf, Config* c) {
  MixtureDims& m = c->mixture;
  m.scoring = Scoring::kSigmoid;
  LOCKSTEP_RETURN_IF_ERROR(ExpectActivation(hf, "topk_method", "noaux_tc"));
  LOCKSTEP_RETURN_IF_ERROR(ExpectActivation(hf, "scoring_func", "sigmoid"));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t frequency, ReadSizeOr(hf, "moe_layer_freq", 1));
  if (frequency != 1) return hf.Error("moe_layer_freq", "only 1 is supported");
  LOCKSTEP_ASSIGN_OR_RETURN(m.experts, ReadSize(hf, "n_routed_experts"));
  LOCKSTEP_ASSIGN_OR_RETURN(m.used, ReadSize(hf, "num_experts_per_tok"));
  LOCKSTEP_ASSIGN_OR_RETURN(m.d_expert, ReadSize(hf, "moe_intermediate_size"));
  LOCKSTEP_ASSIGN_OR_RETURN(m.normalised, hf.GetBoolOr("norm_topk_prob", true));
  LOCKSTEP_ASSIGN_OR_RETURN(m.groups, ReadSizeOr(hf, "n_group", 1));
  LOCKSTEP_ASSIGN_OR_RETURN(m.used_groups, ReadSizeOr(hf, "topk_group", 1));
  LOCKSTEP_ASSIGN_OR_RETURN(m.scale, hf.GetF32Or("routed_scaling_factor", 1.0f));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t shared, ReadSizeOr(hf, "n_shared_experts", 0));
  LOCKSTEP_ASSIGN_OR_RETURN(c->dense_layers, ReadSizeOr(hf, "first_k_dense_replace", 0));
  LOCKSTEP_ASSIGN_OR_RETURN(c->draft_layers, ReadSizeOr(hf, "num_nextn_predict_layers", 0));
  if (c->draft_layers > 64) return hf.Error("num_nextn_predict_layers", "is out of range");
  SetShared(shared, c);
  return CheckMixture(hf.file(), *c);
}

// YaRN's part in the scale: the square of mscale_all_dim's.
Result<double> ScaleOfScores(const HfConfig& hf, int32_t query) {
  const double plain = 1.0 / std::sqrt(static_cast<double>(query));
  const char* key = hf.Has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<HfConfig> rope, hf.GetObjectOr(key));
  if (!rope || !rope->Has("factor")) return plain;
  LOCKSTEP_ASSIGN_OR_RETURN(const double factor, rope->GetF64("factor"));
  LOCKSTEP_ASSIGN_OR_RETURN(const double all_dim, rope->GetF64Or("mscale_all_dim", 0.0));
  const double mscale = all_dim == 0.0 ? 1.0 : YarnMscale(factor, all_dim);
  return plain * mscale * mscale;
}

Result<Config> FromHf(const HfConfig& hf) {
  Config c;
  LatentDims& l = c.latent;
  // A head_dim that is there anyway is that of the rotary key; what counts is below.
  LOCKSTEP_ASSIGN_OR_RETURN(c.dims, ReadDims(hf, {.head_dim = 64}));
  LOCKSTEP_RETURN_IF_ERROR(ExpectActivation(hf, "hidden_act", "silu"));
  LOCKSTEP_ASSIGN_OR_RETURN(l.query_rank, ReadSizeOr(hf, "q_lora_rank", 0));
  LOCKSTEP_ASSIGN_OR_RETURN(l.rank, ReadSize(hf, "kv_lora_rank"));
  LOCKSTEP_ASSIGN_OR_RETURN(l.rope, ReadSize(hf, "qk_rope_head_dim"));
  LOCKSTEP_ASSIGN_OR_RETURN(l.plain, ReadSize(hf, "qk_nope_head_dim"));
  LOCKSTEP_ASSIGN_OR_RETURN(l.value, ReadSize(hf, "v_head_dim"));
  LOCKSTEP_RETURN_IF_ERROR(CheckLatent(hf.file(), l));
  SetDims(&c);
  LOCKSTEP_ASSIGN_OR_RETURN(c.rope, ReadRope(hf, l.rope));
  LOCKSTEP_ASSIGN_OR_RETURN(const double scale, ScaleOfScores(hf, l.query()));
  c.scale = static_cast<float>(scale);
  LOCKSTEP_ASSIGN_OR_RETURN(c.rotates_pairs, hf.GetBoolOr("rope_interleave", true));
  LOCKSTEP_ASSIGN_OR_RETURN(c.attention_bias, hf.GetBoolOr("attention_bias", false));
  LOCKSTEP_RETURN_IF_ERROR(ReadMixture(hf, &c));
  return c;
}

Status ReadMixture(const GgufMetadata& metadata, const std::string& file, Config* c) {
  MixtureDims& m = c->mixture;
  const auto get = [&](const char* key) { return ReadSize(metadata, file, Key(key)); };
  const auto get_or = [&](const char* key, int32_t fallback) {
    return ReadSizeOr(metadata, file, Key(key), fallback);
  };
  m.scoring = Scoring::kSigmoid;
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t function, get_or("expert_gating_func", 0));
  if (function != kGgufSigmoid) {
    return Unimplemented(fmt::format("{}: {} is {}; only {}, a sigmoid, is supported", file,
                                     Key("expert_gating_func"), function, kGgufSigmoid),
                         Key("expert_gating_func"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(m.experts, get("expert_count"));
  LOCKSTEP_ASSIGN_OR_RETURN(m.used, get("expert_used_count"));
  LOCKSTEP_ASSIGN_OR_RETURN(m.d_expert, get("expert_feed_forward_length"));
  LOCKSTEP_ASSIGN_OR_RETURN(m.normalised, metadata.GetBoolOr(Key("expert_weights_norm"), false));
  LOCKSTEP_ASSIGN_OR_RETURN(m.scale, metadata.GetF32Or(Key("expert_weights_scale"), 1.0f));
  LOCKSTEP_ASSIGN_OR_RETURN(m.groups, get_or("expert_group_count", 1));
  LOCKSTEP_ASSIGN_OR_RETURN(m.used_groups, get_or("expert_group_used_count", 1));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t shared, get_or("expert_shared_count", 0));
  LOCKSTEP_ASSIGN_OR_RETURN(c->dense_layers, get_or("leading_dense_block_count", 0));
  SetShared(shared, c);
  return CheckMixture(file, *c);
}

Status ReadRotation(const GgufMetadata& metadata, const std::string& file, Config* c) {
  const int32_t query = c->latent.query();
  c->scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(query)));
  LOCKSTEP_ASSIGN_OR_RETURN(const float base, metadata.GetF32Or(Key("rope.freq_base"), 10000.0f));
  if (!(base >= 1.0f && base <= 1e12f)) {
    return DataLoss(fmt::format("{}: the rotary base {} is not in [1, 1e12]", file, base));
  }
  c->rope = RopeFrequencies(base, c->latent.rope);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string type,
                            metadata.GetStringOr(Key("rope.scaling.type"), "none"));
  if (type == "none") return OkStatus();
  YarnRopeScaling scaling;
  LOCKSTEP_ASSIGN_OR_RETURN(scaling.factor, metadata.GetF32(Key("rope.scaling.factor")));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t original,
                            ReadSize(metadata, file, Key("rope.scaling.original_context_length")));
  // A tenth of mscale_all_dim; mscale is taken to be the same, so that their quotient is 1.
  LOCKSTEP_ASSIGN_OR_RETURN(const float tenth,
                            metadata.GetF32Or(Key("rope.scaling.yarn_log_multiplier"), 0.0f));
  if (type != "yarn" || !(scaling.factor > 0.0f) || original < 1) {
    return Unimplemented(fmt::format("{}: {} '{}' with factor {} of a context of {}", file,
                                     Key("rope.scaling.type"), type, scaling.factor, original),
                         Key("rope.scaling.type"));
  }
  scaling.original_context = static_cast<float>(original);
  c->rope.ScaleYarn(scaling);
  const double mscale = YarnMscale(scaling.factor, 10.0 * static_cast<double>(tenth));
  c->scale = static_cast<float>(mscale * mscale / std::sqrt(static_cast<double>(query)));
  return OkStatus();
}

Result<Config> FromGguf(const GgufFile& gguf) {
  const std::string& file = gguf.path();
  const GgufMetadata& metadata = gguf.metadata();
  const auto get = [&](const char* key) { return ReadSize(metadata, file, Key(key)); };
  Config c;
  LatentDims& l = c.latent;
  LOCKSTEP_ASSIGN_OR_RETURN(c.dims, ReadDims(gguf, kGguf, false));
  LOCKSTEP_ASSIGN_OR_RETURN(l.query_rank,
                            ReadSizeOr(metadata, file, Key("attention.q_lora_rank"), 0));
  LOCKSTEP_ASSIGN_OR_RETURN(l.rank, get("attention.kv_lora_rank"));
  LOCKSTEP_ASSIGN_OR_RETURN(l.rope, get("rope.dimension_count"));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t query, get("attention.key_length_mla"));
  LOCKSTEP_ASSIGN_OR_RETURN(l.value, get("attention.value_length_mla"));
  l.plain = query - l.rope;
  LOCKSTEP_RETURN_IF_ERROR(CheckLatent(file, l));
  SetDims(&c);
  LOCKSTEP_RETURN_IF_ERROR(ReadRotation(metadata, file, &c));
  LOCKSTEP_RETURN_IF_ERROR(ReadMixture(metadata, file, &c));
  return c;
}

}  // namespace

Result<Config> ReadConfig(const Checkpoint& checkpoint) {
  return checkpoint.gguf() != nullptr ? FromGguf(*checkpoint.gguf()) : FromHf(*checkpoint.config());
}

}  // namespace lockstep::deepseek
