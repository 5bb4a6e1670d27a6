#include <string>

#include "model/arch/llama/llama.h"

#include "model/weight_loader.h"

namespace lockstep::llama {
namespace {

// What the two families of files call a layer's tensors. Both keep [outputs, inputs].
struct Names {
  const char* embedding;
  const char* final_norm;
  const char* head;
  const char* layer;  // prefix; the layer's number and a dot follow
  const char* attention_norm;
  const char* q;
  const char* k;
  const char* v;
  const char* out;
  const char* ffn_norm;
  const char* gate;
  const char* up;
  const char* down;
};

constexpr Names kHfNames = {"model.embed_tokens",
                            "model.norm",
                            "lm_head",
                            "model.layers.",
                            "input_layernorm",
                            "self_attn.q_proj",
                            "self_attn.k_proj",
                            "self_attn.v_proj",
                            "self_attn.o_proj",
                            "post_attention_layernorm",
                            "mlp.gate_proj",
                            "mlp.up_proj",
                            "mlp.down_proj"};

constexpr Names kGgufNames = {"token_embd", "output_norm", "output",  "blk.",        "attn_norm",
                              "attn_q",     "attn_k",      "attn_v",  "attn_output", "ffn_norm",
                              "ffn_gate",   "ffn_up",      "ffn_down"};

// GGUF stores the rows of q and k so that rotated pairs are neighbours; we rotate halves, as the
// original checkpoints do. Row r of a head in our order is row 2r, or 2(r - half) + 1, in the
// file's.
std::vector<int32_t> HalvesFromPairs(int32_t heads, int32_t head_dim) {
  std::vector<int32_t> rows(size_t(heads) * head_dim);
  const int32_t half = head_dim / 2;
  for (int32_t h = 0; h < heads; ++h) {
    for (int32_t r = 0; r < head_dim; ++r) {
      rows[h * head_dim + r] = h * head_dim + (r < half ? 2 * r : 2 * (r - half) + 1);
    }
  }
  return rows;
}

}  // namespace

Result<Weights> LoadWeights(const Config& c, const Checkpoint& checkpoint, WeightLoader* loader) {
  const bool gguf = checkpoint.gguf() != nullptr;
  const Names& names = gguf ? kGgufNames : kHfNames;
  const int32_t q_rows = c.heads * c.head_dim;
  const int32_t kv_rows = c.kv_heads * c.head_dim;

  const auto linear = [&](const std::string& name, int32_t n, int32_t k, bool needs_bias,
                          std::vector<int32_t> rows = {}) {
    return loader->LoadLinear(name + ".weight", n, k,
                              {name + ".bias", needs_bias, std::move(rows)});
  };
  const auto norm = [&](const std::string& name) -> Result<RmsNorm> {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<float> weight,
                              loader->LoadVector(name + ".weight", c.d_model));
    return RmsNorm(std::move(weight), c.rms_eps);
  };
  const auto rotated = [&](int32_t heads) {
    return gguf ? HalvesFromPairs(heads, c.head_dim) : std::vector<int32_t>();
  };

  Weights w;
  const std::string embedding = std::string(names.embedding) + ".weight";
  LOCKSTEP_ASSIGN_OR_RETURN(w.embedding, loader->LoadEmbedding(embedding, c.vocab_size, c.d_model));
  for (int32_t l = 0; l < c.layers; ++l) {
    const std::string prefix = names.layer + std::to_string(l) + ".";
    Layer layer;
    LOCKSTEP_ASSIGN_OR_RETURN(layer.attention_norm, norm(prefix + names.attention_norm));
    LOCKSTEP_ASSIGN_OR_RETURN(
        layer.q, linear(prefix + names.q, q_rows, c.d_model, c.attention_bias, rotated(c.heads)));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.k, linear(prefix + names.k, kv_rows, c.d_model,
                                              c.attention_bias, rotated(c.kv_heads)));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.v,
                              linear(prefix + names.v, kv_rows, c.d_model, c.attention_bias));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.out,
                              linear(prefix + names.out, c.d_model, q_rows, c.attention_bias));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.ffn_norm, norm(prefix + names.ffn_norm));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.gate,
                              linear(prefix + names.gate, c.d_ff, c.d_model, c.mlp_bias));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.up, linear(prefix + names.up, c.d_ff, c.d_model, c.mlp_bias));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.down,
                              linear(prefix + names.down, c.d_model, c.d_ff, c.mlp_bias));
    loader->Ignore(prefix + "self_attn.rotary_emb.inv_freq");  // computed from the configuration
    w.layers.push_back(std::move(layer));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(w.final_norm, norm(names.final_norm));
  if (c.tied_head) {
    LOCKSTEP_ASSIGN_OR_RETURN(w.head, linear(names.embedding, c.vocab_size, c.d_model, false));
    loader->Ignore(std::string(names.head) +
                   ".weight");  // a copy, where files keep one all the same
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(w.head, linear(names.head, c.vocab_size, c.d_model, false));
  }
  loader->Ignore("rope_freqs.weight");  // read with the configuration
  LOCKSTEP_RETURN_IF_ERROR(loader->Finish());
  return w;
}

}  // namespace lockstep::llama
