#include "model/arch/llama/config.h"

#include <string>
#include <vector>

namespace lockstep::llama {
namespace {

// Bounds that no real model meets and that keep every product of two of them in range.
constexpr int64_t kMaxDimension = 1 << 20;

Status CheckShape(const std::string& file, const Config& c) {
  const auto check = [&](const char* what, int64_t value) {
    if (value >= 1 && value <= kMaxDimension) return OkStatus();
    return DataLoss(file + ": " + what + " is " + std::to_string(value) + "; expected 1 to " +
                        std::to_string(kMaxDimension),
                    what);
  };
  LOCKSTEP_RETURN_IF_ERROR(check("vocabulary size", c.vocab_size));
  LOCKSTEP_RETURN_IF_ERROR(check("hidden size", c.d_model));
  LOCKSTEP_RETURN_IF_ERROR(check("number of layers", c.layers));
  LOCKSTEP_RETURN_IF_ERROR(check("feed-forward size", c.d_ff));
  LOCKSTEP_RETURN_IF_ERROR(check("number of heads", c.heads));
  LOCKSTEP_RETURN_IF_ERROR(check("number of KV heads", c.kv_heads));
  if (c.heads % c.kv_heads != 0) {
    return DataLoss(file + ": " + std::to_string(c.heads) + " heads are not a multiple of " +
                    std::to_string(c.kv_heads) + " KV heads");
  }
  if (c.head_dim < 8 || c.head_dim > 576 || c.head_dim % 8 != 0) {
    return Unimplemented(file + ": a head size of " + std::to_string(c.head_dim) +
                         "; supported are multiples of 8 up to 576");
  }
  if (!(c.rms_eps > 0.0f && c.rms_eps < 1.0f)) {
    return DataLoss(file + ": the norm's epsilon is not in (0, 1)");
  }
  return OkStatus();
}

// A checkpoint that says 0 would otherwise be refused by whoever first divides the context.
Status CheckContext(const std::string& file, const char* key, int32_t max_context) {
  if (max_context >= 1) return OkStatus();
  return DataLoss(
      file + ": " + key + " is " + std::to_string(max_context) + "; expected at least 1", key);
}

// The dimensions as the files' integers, before they are known to fit.
Result<int32_t> Dimension(Result<uint32_t> value, const std::string& file, const char* key) {
  if (!value.ok()) return value.status();
  if (*value > (int64_t{1} << 30)) return DataLoss(file + ": " + key + " is out of range", key);
  return static_cast<int32_t>(*value);
}

Status CheckRopeBase(const std::string& file, double base) {
  if (base >= 1.0 && base <= 1e12) return OkStatus();
  return DataLoss(file + ": the rotary base " + std::to_string(base) + " is not in [1, 1e12]");
}

Result<Config> FromGguf(const GgufFile& gguf) {
  const GgufMetadata& metadata = gguf.metadata();
  const std::string& file = gguf.path();
  const auto get = [&](const char* key) { return Dimension(metadata.GetU32(key), file, key); };
  const auto get_or = [&](const char* key, int32_t fallback) {
    return Dimension(metadata.GetU32Or(key, fallback), file, key);
  };
  Config c;
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t experts, get_or("llama.expert_count", 0));
  if (experts != 0) {
    return Unimplemented(file + ": llama.expert_count is " + std::to_string(experts) +
                             "; mixtures of experts are not supported for this architecture",
                         "llama.expert_count");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(c.layers, get("llama.block_count"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.d_model, get("llama.embedding_length"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.d_ff, get("llama.feed_forward_length"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.heads, get("llama.attention.head_count"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.kv_heads, get_or("llama.attention.head_count_kv", c.heads));
  LOCKSTEP_ASSIGN_OR_RETURN(c.max_context, get("llama.context_length"));
  LOCKSTEP_RETURN_IF_ERROR(CheckContext(file, "llama.context_length", c.max_context));
  LOCKSTEP_ASSIGN_OR_RETURN(c.rms_eps, metadata.GetF32("llama.attention.layer_norm_rms_epsilon"));
  if (c.heads < 1) return DataLoss(file + ": llama.attention.head_count is 0");
  LOCKSTEP_ASSIGN_OR_RETURN(c.head_dim, get_or("llama.attention.key_length", c.d_model / c.heads));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t value_length,
                            get_or("llama.attention.value_length", c.head_dim));
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t rope_dims,
                            get_or("llama.rope.dimension_count", c.head_dim));
  if (value_length != c.head_dim || rope_dims != c.head_dim) {
    return Unimplemented(file + ": heads whose key, value and rotary sizes differ (" +
                         std::to_string(c.head_dim) + ", " + std::to_string(value_length) + ", " +
                         std::to_string(rope_dims) + ")");
  }
  const TensorView* embedding = gguf.FindTensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return DataLoss(file + ": tensor token_embd.weight is missing or not a matrix",
                    "token_embd.weight");
  }
  if (embedding->shape[0] > kMaxDimension) return DataLoss(file + ": the vocabulary is too large");
  c.vocab_size = static_cast<int32_t>(embedding->shape[0]);
  c.tied_head = gguf.FindTensor("output.weight") == nullptr;
  LOCKSTEP_RETURN_IF_ERROR(CheckShape(file, c));

  LOCKSTEP_ASSIGN_OR_RETURN(const float base, metadata.GetF32Or("llama.rope.freq_base", 10000.0f));
  LOCKSTEP_RETURN_IF_ERROR(CheckRopeBase(file, base));
  c.rope = RopeFrequencies(base, c.head_dim);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string scaling,
                            metadata.GetStringOr("llama.rope.scaling.type", "none"));
  LOCKSTEP_ASSIGN_OR_RETURN(const float factor,
                            metadata.GetF32Or("llama.rope.scaling.factor", 1.0f));
  if (scaling == "linear" && factor > 0.0f) {
    c.rope.ScaleLinear(factor);
  } else if (scaling != "none") {
    return Unimplemented(
        file + ": llama.rope.scaling.type '" + scaling + "' with factor " + std::to_string(factor),
        "llama.rope.scaling.type");
  }
  if (const TensorView* factors = gguf.FindTensor("rope_freqs.weight"); factors != nullptr) {
    if (factors->dtype != DType::kF32 || factors->elements() != c.rope.half()) {
      return DataLoss(file + ": tensor rope_freqs.weight is not " + std::to_string(c.rope.half()) +
                          " values of F32",
                      "rope_freqs.weight");
    }
    c.rope.Divide({reinterpret_cast<const float*>(factors->data.data()), size_t(c.rope.half())});
  }
  return c;
}

Status ApplyHfRopeScaling(const HfConfig& rope, RopeFrequencies* frequencies) {
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
  return rope.Error("rope_type", "'" + type + "' is not supported");
}

Result<Config> FromHf(const HfConfig& hf) {
  const std::string& file = hf.file();
  const auto get = [&](const char* key) { return Dimension(hf.GetU32(key), file, key); };
  const auto get_or = [&](const char* key, int32_t fallback) {
    return Dimension(hf.GetU32Or(key, fallback), file, key);
  };
  Config c;
  LOCKSTEP_ASSIGN_OR_RETURN(c.vocab_size, get("vocab_size"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.d_model, get("hidden_size"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.layers, get("num_hidden_layers"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.d_ff, get("intermediate_size"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.heads, get("num_attention_heads"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.kv_heads, get_or("num_key_value_heads", c.heads));
  LOCKSTEP_ASSIGN_OR_RETURN(c.max_context, get("max_position_embeddings"));
  LOCKSTEP_RETURN_IF_ERROR(CheckContext(file, "max_position_embeddings", c.max_context));
  if (c.heads < 1) return hf.Error("num_attention_heads", "must be at least 1");
  LOCKSTEP_ASSIGN_OR_RETURN(c.head_dim, get_or("head_dim", c.d_model / c.heads));
  LOCKSTEP_ASSIGN_OR_RETURN(c.rms_eps, hf.GetF32Or("rms_norm_eps", 1e-6f));
  LOCKSTEP_ASSIGN_OR_RETURN(c.attention_bias, hf.GetBoolOr("attention_bias", false));
  LOCKSTEP_ASSIGN_OR_RETURN(c.mlp_bias, hf.GetBoolOr("mlp_bias", false));
  LOCKSTEP_ASSIGN_OR_RETURN(c.tied_head, hf.GetBoolOr("tie_word_embeddings", false));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string activation, hf.GetStringOr("hidden_act", "silu"));
  if (activation != "silu") return hf.Error("hidden_act", "'" + activation + "' is not supported");
  LOCKSTEP_RETURN_IF_ERROR(CheckShape(file, c));

  // transformers 5 puts everything about rotation under rope_parameters; before, the base stood
  // alone and the scaling under rope_scaling.
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<HfConfig> rope, hf.GetObjectOr("rope_parameters"));
  double base = 10000.0;
  if (rope) {
    LOCKSTEP_ASSIGN_OR_RETURN(base, rope->GetF64Or("rope_theta", base));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(rope, hf.GetObjectOr("rope_scaling"));
    LOCKSTEP_ASSIGN_OR_RETURN(base, hf.GetF64Or("rope_theta", base));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckRopeBase(file, base));
  c.rope = RopeFrequencies(base, c.head_dim);
  if (rope) LOCKSTEP_RETURN_IF_ERROR(ApplyHfRopeScaling(*rope, &c.rope));
  return c;
}

}  // namespace

Result<Config> ReadConfig(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return FromGguf(*checkpoint.gguf());
  if (checkpoint.config() != nullptr) return FromHf(*checkpoint.config());
  return InvalidArgument(checkpoint.path() +
                         ": a lone .safetensors file has no configuration; give its folder");
}

}  // namespace lockstep::llama
