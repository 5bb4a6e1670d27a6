#include "model/load/decoder_config.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

// Bounds that no real model meets and that keep every product of two of them in range.
constexpr int64_t kMaxDimension = 1 << 20;
constexpr int64_t kMaxSize = int64_t{1} << 30;

Result<int32_t> Checked(Result<uint32_t> value, const std::string& file, const std::string& key) {
  if (!value.ok()) return value.status();
  if (*value > kMaxSize) return DataLoss(file + ": " + key + " is out of range", key);
  return static_cast<int32_t>(*value);
}

Status CheckShape(const std::string& file, const DecoderDims& d) {
  const auto check = [&](const char* what, int64_t value) {
    if (value >= 1 && value <= kMaxDimension) return OkStatus();
    return DataLoss(fmt::format("{}: {} is {}; expected 1 to {}", file, what, value, kMaxDimension),
                    what);
  };
  LOCKSTEP_RETURN_IF_ERROR(check("vocabulary size", d.vocab_size));
  LOCKSTEP_RETURN_IF_ERROR(check("hidden size", d.d_model));
  LOCKSTEP_RETURN_IF_ERROR(check("number of layers", d.layers));
  LOCKSTEP_RETURN_IF_ERROR(check("feed-forward size", d.d_ff));
  LOCKSTEP_RETURN_IF_ERROR(check("number of heads", d.heads));
  LOCKSTEP_RETURN_IF_ERROR(check("number of KV heads", d.kv_heads));
  if (d.heads % d.kv_heads != 0) {
    return DataLoss(
        fmt::format("{}: {} heads are not a multiple of {} KV heads", file, d.heads, d.kv_heads));
  }
  if (d.head_dim < 8 || d.head_dim > 576 || d.head_dim % 8 != 0) {
    return Unimplemented(fmt::format(
        "{}: a head size of {}; supported are multiples of 8 up to 576", file, d.head_dim));
  }
  if (!(d.rms_eps > 0.0f && d.rms_eps < 1.0f)) {
    return DataLoss(file + ": the norm's epsilon is not in (0, 1)");
  }
  return OkStatus();
}

// A checkpoint that says 0 would otherwise be refused by whoever first divides the context.
Status CheckContext(const std::string& file, const std::string& key, int32_t max_context) {
  if (max_context >= 1) return OkStatus();
  return DataLoss(fmt::format("{}: {} is {}; expected at least 1", file, key, max_context), key);
}

Status CheckRopeBase(const std::string& file, double base) {
  if (base >= 1.0 && base <= 1e12) return OkStatus();
  return DataLoss(file + ": the rotary base " + std::to_string(base) + " is not in [1, 1e12]");
}

Status ScaleYarn(const HfConfig& rope, float factor, RopeFrequencies* frequencies) {
  YarnRopeScaling scaling{.factor = factor};
  LOCKSTEP_ASSIGN_OR_RETURN(scaling.original_context,
                            rope.GetF32("original_max_position_embeddings"));
  LOCKSTEP_ASSIGN_OR_RETURN(scaling.beta_fast, rope.GetF32Or("beta_fast", scaling.beta_fast));
  LOCKSTEP_ASSIGN_OR_RETURN(scaling.beta_slow, rope.GetF32Or("beta_slow", scaling.beta_slow));
  LOCKSTEP_ASSIGN_OR_RETURN(scaling.truncate, rope.GetBoolOr("truncate", true));
  if (!(scaling.original_context >= 1.0f)) {
    return rope.Error("original_max_position_embeddings", "must be at least 1");
  }
  if (!(scaling.beta_slow > 0.0f && scaling.beta_fast >= scaling.beta_slow)) {
    return rope.Error("beta_fast", "must be at least beta_slow, which must be above 0");
  }
  frequencies->ScaleYarn(scaling);
  LOCKSTEP_ASSIGN_OR_RETURN(const double mscale, rope.GetF64Or("mscale", 0.0));
  LOCKSTEP_ASSIGN_OR_RETURN(const double all_dim, rope.GetF64Or("mscale_all_dim", 0.0));
  const double amplitude = mscale != 0.0 && all_dim != 0.0
                               ? YarnMscale(factor, mscale) / YarnMscale(factor, all_dim)
                               : YarnMscale(factor, 1.0);
  LOCKSTEP_ASSIGN_OR_RETURN(const double wanted, rope.GetF64Or("attention_factor", amplitude));
  frequencies->ScaleAmplitude(static_cast<float>(wanted));
  return OkStatus();
}

Status Scale(const HfConfig& rope, RopeFrequencies* frequencies) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string type, rope.GetStringOr("rope_type", ""));
  if (type.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(type, rope.GetStringOr("type", "default"));
  }
  if (type == "default") return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const float factor, rope.GetF32("factor"));
  if (!(factor > 0.0f)) return rope.Error("factor", "must be above 0");
  if (type == "linear") {
    frequencies->ScaleLinear(factor);
    return OkStatus();
  }
  if (type == "llama3") {
    Llama3RopeScaling scaling{.factor = factor};
    LOCKSTEP_ASSIGN_OR_RETURN(scaling.low_freq_factor, rope.GetF32("low_freq_factor"));
    LOCKSTEP_ASSIGN_OR_RETURN(scaling.high_freq_factor, rope.GetF32("high_freq_factor"));
    LOCKSTEP_ASSIGN_OR_RETURN(scaling.original_context,
                              rope.GetF32("original_max_position_embeddings"));
    if (!(scaling.low_freq_factor > 0.0f && scaling.high_freq_factor > scaling.low_freq_factor)) {
      return rope.Error("high_freq_factor", "must be above low_freq_factor, which must be above 0");
    }
    frequencies->ScaleLlama3(scaling);
    return OkStatus();
  }
  if (type == "yarn") return ScaleYarn(rope, factor, frequencies);
  return rope.Error("rope_type", "'" + type + "' is not supported");
}

}  // namespace

Result<int32_t> ReadSize(const HfConfig& config, const char* key) {
  return Checked(config.GetU32(key), config.file(), key);
}

Result<int32_t> ReadSizeOr(const HfConfig& config, const char* key, int32_t fallback) {
  return Checked(config.GetU32Or(key, static_cast<uint32_t>(fallback)), config.file(), key);
}

Result<int32_t> ReadSize(const GgufMetadata& metadata, const std::string& file,
                         const std::string& key) {
  return Checked(metadata.GetU32(key), file, key);
}

Result<int32_t> ReadSizeOr(const GgufMetadata& metadata, const std::string& file,
                           const std::string& key, int32_t fallback) {
  return Checked(metadata.GetU32Or(key, static_cast<uint32_t>(fallback)), file, key);
}

Result<DecoderDims> ReadDims(const HfConfig& hf, const DecoderDims& defaults) {
  const auto get = [&](const char* key, int32_t fallback) {
    return fallback != 0 ? ReadSizeOr(hf, key, fallback) : ReadSize(hf, key);
  };
  DecoderDims d;
  LOCKSTEP_ASSIGN_OR_RETURN(d.vocab_size, get("vocab_size", defaults.vocab_size));
  LOCKSTEP_ASSIGN_OR_RETURN(d.d_model, get("hidden_size", defaults.d_model));
  LOCKSTEP_ASSIGN_OR_RETURN(d.layers, get("num_hidden_layers", defaults.layers));
  LOCKSTEP_ASSIGN_OR_RETURN(d.d_ff, get("intermediate_size", defaults.d_ff));
  LOCKSTEP_ASSIGN_OR_RETURN(d.heads, get("num_attention_heads", defaults.heads));
  if (d.heads < 1) return hf.Error("num_attention_heads", "must be at least 1");
  LOCKSTEP_ASSIGN_OR_RETURN(
      d.kv_heads, get("num_key_value_heads", defaults.kv_heads != 0 ? defaults.kv_heads : d.heads));
  LOCKSTEP_ASSIGN_OR_RETURN(d.max_context, get("max_position_embeddings", defaults.max_context));
  LOCKSTEP_RETURN_IF_ERROR(CheckContext(hf.file(), "max_position_embeddings", d.max_context));
  LOCKSTEP_ASSIGN_OR_RETURN(
      d.head_dim,
      ReadSizeOr(hf, "head_dim", defaults.head_dim != 0 ? defaults.head_dim : d.d_model / d.heads));
  LOCKSTEP_ASSIGN_OR_RETURN(d.rms_eps, hf.GetF32Or("rms_norm_eps", 1e-6f));
  LOCKSTEP_ASSIGN_OR_RETURN(d.tied_head, hf.GetBoolOr("tie_word_embeddings", defaults.tied_head));
  LOCKSTEP_RETURN_IF_ERROR(CheckShape(hf.file(), d));
  return d;
}

Result<DecoderDims> ReadDims(const GgufFile& gguf, const std::string& architecture, bool one_size) {
  const std::string& file = gguf.path();
  const GgufMetadata& metadata = gguf.metadata();
  const auto name = [&](const char* key) { return architecture + "." + key; };
  const auto get = [&](const char* key) { return ReadSize(metadata, file, name(key)); };
  const auto get_or = [&](const char* key, int32_t fallback) {
    return ReadSizeOr(metadata, file, name(key), fallback);
  };
  DecoderDims d;
  LOCKSTEP_ASSIGN_OR_RETURN(d.layers, get("block_count"));
  LOCKSTEP_ASSIGN_OR_RETURN(d.d_model, get("embedding_length"));
  LOCKSTEP_ASSIGN_OR_RETURN(d.d_ff, get("feed_forward_length"));
  LOCKSTEP_ASSIGN_OR_RETURN(d.heads, get("attention.head_count"));
  LOCKSTEP_ASSIGN_OR_RETURN(d.kv_heads, get_or("attention.head_count_kv", d.heads));
  LOCKSTEP_ASSIGN_OR_RETURN(d.max_context, get("context_length"));
  LOCKSTEP_RETURN_IF_ERROR(CheckContext(file, name("context_length"), d.max_context));
  LOCKSTEP_ASSIGN_OR_RETURN(d.rms_eps, metadata.GetF32(name("attention.layer_norm_rms_epsilon")));
  if (d.heads < 1) return DataLoss(file + ": " + name("attention.head_count") + " is 0");
  LOCKSTEP_ASSIGN_OR_RETURN(d.head_dim, get_or("attention.key_length", d.d_model / d.heads));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t value_length,
                            get_or("attention.value_length", d.head_dim));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t rope_dims, get_or("rope.dimension_count", d.head_dim));
  if (one_size && (value_length != d.head_dim || rope_dims != d.head_dim)) {
    return Unimplemented(
        fmt::format("{}: heads whose key, value and rotary sizes differ ({}, {}, {})", file,
                    d.head_dim, value_length, rope_dims));
  }
  const TensorView* embedding = gguf.FindTensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return DataLoss(file + ": tensor token_embd.weight is missing or not a matrix",
                    "token_embd.weight");
  }
  if (embedding->shape[0] > kMaxDimension) return DataLoss(file + ": the vocabulary is too large");
  d.vocab_size = static_cast<int32_t>(embedding->shape[0]);
  d.tied_head = gguf.FindTensor("output.weight") == nullptr;
  LOCKSTEP_RETURN_IF_ERROR(CheckShape(file, d));
  return d;
}

Result<RopeFrequencies> ReadRope(const HfConfig& config, const std::optional<HfConfig>& object,
                                 double base, int32_t head_dim) {
  if (object) {
    LOCKSTEP_ASSIGN_OR_RETURN(base, object->GetF64Or("rope_theta", base));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckRopeBase(config.file(), base));
  RopeFrequencies rope(base, head_dim);
  if (object) LOCKSTEP_RETURN_IF_ERROR(Scale(*object, &rope));
  return rope;
}

Result<RopeFrequencies> ReadRope(const HfConfig& config, int32_t head_dim) {
  double base = 10000.0;
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<HfConfig> object, config.GetObjectOr("rope_parameters"));
  if (!object) {
    LOCKSTEP_ASSIGN_OR_RETURN(object, config.GetObjectOr("rope_scaling"));
    LOCKSTEP_ASSIGN_OR_RETURN(base, config.GetF64Or("rope_theta", base));
  }
  return ReadRope(config, object, base, head_dim);
}

Result<RopeFrequencies> ReadRope(const GgufFile& gguf, const std::string& architecture,
                                 double default_base, int32_t head_dim) {
  const GgufMetadata& metadata = gguf.metadata();
  const std::string type_key = architecture + ".rope.scaling.type";
  LOCKSTEP_ASSIGN_OR_RETURN(const float base, metadata.GetF32Or(architecture + ".rope.freq_base",
                                                                static_cast<float>(default_base)));
  LOCKSTEP_RETURN_IF_ERROR(CheckRopeBase(gguf.path(), base));
  RopeFrequencies rope(base, head_dim);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, metadata.GetStringOr(type_key, "none"));
  LOCKSTEP_ASSIGN_OR_RETURN(const float factor,
                            metadata.GetF32Or(architecture + ".rope.scaling.factor", 1.0f));
  if (type == "linear" && factor > 0.0f) {
    rope.ScaleLinear(factor);
  } else if (type != "none") {
    return Unimplemented(
        fmt::format("{}: {} '{}' with factor {}", gguf.path(), type_key, type, factor), type_key);
  }
  return rope;
}

Result<std::vector<bool>> ReadLayerTypes(const HfConfig& config, int32_t layers,
                                         const std::string& other) {
  constexpr const char* kKey = "layer_types";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> types, config.GetStringArray(kKey));
  if (static_cast<int32_t>(types.size()) != layers) {
    return config.Error(kKey, fmt::format("has {} entries for {} layers", types.size(), layers));
  }
  std::vector<bool> is_other;
  for (const std::string& type : types) {
    if (type != other && type != "full_attention") {
      return config.Error(kKey, "'" + type + "' is not supported");
    }
    is_other.push_back(type == other);
  }
  return is_other;
}

Status ExpectActivation(const HfConfig& config, const char* key, const std::string& wanted) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string activation, config.GetStringOr(key, wanted));
  if (activation == wanted) return OkStatus();
  return config.Error(key, "'" + activation + "' is not supported");
}

}  // namespace lockstep
