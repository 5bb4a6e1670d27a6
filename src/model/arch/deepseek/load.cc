// The weights of DeepSeek V3 under the names of Hugging Face folders, of mlx-lm's and of GGUF.
#include <string>
#include <utility>

#include "model/arch/deepseek/deepseek.h"
#include "model/load/decoder_loader.h"

namespace lockstep::deepseek {
namespace {

constexpr float kLatentEps = 1e-6f;  // of the latents' norms, whatever the configuration says

// Rows of heads that end in `rope` rotated ones: files keep rotated pairs as neighbours, we rotate
// halves. Row r of ours is row rows[r] of the file's. Scores are the same in any order that queries
// and keys share.
std::vector<int32_t> HalvesFromPairs(int32_t heads, int32_t plain, int32_t rope) {
  std::vector<int32_t> rows;
  for (int32_t h = 0; h < heads; ++h) {
    const int32_t first = h * (plain + rope);
    for (int32_t r = 0; r < plain; ++r) rows.push_back(first + r);
    for (int32_t r = 0; r < rope; ++r) {
      rows.push_back(first + plain + r % (rope / 2) * 2 + r / (rope / 2));
    }
  }
  return rows;
}

Result<RmsNorm> LoadLatentNorm(DecoderLoader* loader, const std::string& name, int32_t n) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<float> weight,
                            loader->weights().LoadVector(name + ".weight", n));
  return RmsNorm(std::move(weight), kLatentEps);
}

Result<LatentAttention> LoadAttention(int32_t layer, const Config& c, DecoderLoader* loader) {
  const LatentDims& l = c.latent;
  WeightLoader& weights = loader->weights();
  const auto linear = [&](const char* hf, const char* gguf, int32_t n, int32_t k, bool needs_bias,
                          std::vector<int32_t> rows = {}) {
    const std::string name = loader->In(layer, hf, gguf);
    return weights.LoadLinear(name + ".weight", n, k,
                              {name + ".bias", needs_bias, std::move(rows)});
  };
  std::vector<int32_t> query_rows, key_rows;
  if (c.rotates_pairs) {
    query_rows = HalvesFromPairs(l.heads, l.plain, l.rope);
    key_rows = HalvesFromPairs(1, l.rank, l.rope);
  }
  const int32_t d = c.dims.d_model, queries = l.heads * l.query();
  LatentAttention a;
  if (l.query_rank > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        a.query_down, linear("self_attn.q_a_proj", "attn_q_a", l.query_rank, d, c.attention_bias));
    LOCKSTEP_ASSIGN_OR_RETURN(
        a.query_norm,
        LoadLatentNorm(loader, loader->In(layer, "self_attn.q_a_layernorm", "attn_q_a_norm"),
                       l.query_rank));
    LOCKSTEP_ASSIGN_OR_RETURN(a.query, linear("self_attn.q_b_proj", "attn_q_b", queries,
                                              l.query_rank, false, std::move(query_rows)));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(
        a.query, linear("self_attn.q_proj", "attn_q", queries, d, false, std::move(query_rows)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(a.down, linear("self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", l.key(),
                                           d, c.attention_bias, std::move(key_rows)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      a.norm, LoadLatentNorm(
                  loader, loader->In(layer, "self_attn.kv_a_layernorm", "attn_kv_a_norm"), l.rank));
  // mlx-lm and GGUF keep the two parts of what Hugging Face keeps as one, the first one turned.
  const std::string absorbed = loader->In(layer, "self_attn.embed_q", "attn_k_b") + ".weight";
  if (weights.Has(absorbed)) {
    LOCKSTEP_ASSIGN_OR_RETURN(a.absorb_key, weights.LoadStack(absorbed, l.heads, l.rank, l.plain));
    LOCKSTEP_ASSIGN_OR_RETURN(
        a.expand,
        weights.LoadStack(loader->In(layer, "self_attn.unembed_out", "attn_v_b") + ".weight",
                          l.heads, l.value, l.rank));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(
        WeightLoader::Turned parts,
        weights.LoadTurned(loader->In(layer, "self_attn.kv_b_proj", "attn_kv_b") + ".weight",
                           l.heads, l.plain, l.value, l.rank));
    a.absorb_key = std::move(parts.turned);
    a.expand = std::move(parts.rest);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      a.out, linear("self_attn.o_proj", "attn_output", d, l.heads * l.value, c.attention_bias));
  // Computed from the configuration.
  weights.Ignore(loader->In(layer, "self_attn.rotary_emb.inv_freq", "attn_rot_embd.weight"));
  return a;
}

// The experts that every token uses, which files keep as one feed-forward.
Result<GatedFfn> LoadShared(int32_t layer, const Config& c, DecoderLoader* loader) {
  const auto linear = [&](const char* hf, const char* gguf, int32_t n, int32_t k) {
    return loader->weights().LoadLinear(loader->In(layer, hf, gguf) + ".weight", n, k, {});
  };
  const int32_t d = c.dims.d_model;
  GatedFfn ffn;
  LOCKSTEP_ASSIGN_OR_RETURN(
      ffn.gate, linear("mlp.shared_experts.gate_proj", "ffn_gate_shexp", c.d_shared, d));
  LOCKSTEP_ASSIGN_OR_RETURN(ffn.up,
                            linear("mlp.shared_experts.up_proj", "ffn_up_shexp", c.d_shared, d));
  LOCKSTEP_ASSIGN_OR_RETURN(
      ffn.down, linear("mlp.shared_experts.down_proj", "ffn_down_shexp", d, c.d_shared));
  return ffn;
}

}  // namespace

Result<std::unique_ptr<Model>> LoadDeepseekV3(std::shared_ptr<const Checkpoint> checkpoint,
                                              const LoadOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Config config, ReadConfig(*checkpoint));
  LOCKSTEP_ASSIGN_OR_RETURN(DecoderLoader loader,
                            DecoderLoader::Create(checkpoint, options, config.dims, {}));
  LOCKSTEP_ASSIGN_OR_RETURN(DecoderEnds ends, loader.LoadEnds());
  std::vector<Layer> layers(config.dims.layers);
  for (int32_t l = 0; l < config.dims.layers; ++l) {
    Layer& layer = layers[l];
    LOCKSTEP_ASSIGN_OR_RETURN(layer.attention_norm,
                              loader.LoadNorm(l, "input_layernorm", "attn_norm"));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.attention, LoadAttention(l, config, &loader));
    LOCKSTEP_ASSIGN_OR_RETURN(layer.ffn_norm,
                              loader.LoadNorm(l, "post_attention_layernorm", "ffn_norm"));
    if (l < config.dense_layers) {
      LOCKSTEP_ASSIGN_OR_RETURN(layer.ffn, loader.LoadFfn(l, Gate::kSilu, false));
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(layer.mixture, loader.LoadMixture(l, Gate::kSilu, config.mixture));
    if (config.d_shared > 0) {
      LOCKSTEP_ASSIGN_OR_RETURN(layer.shared, LoadShared(l, config, &loader));
    }
  }
  for (int32_t l = 0; l < config.draft_layers; ++l) {
    loader.weights().IgnoreAll(loader.In(config.dims.layers + l, "", ""));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(ModelInfo info, loader.Finish("deepseek2"));
  info.kv_layers.assign(
      layers.size(),
      {.kv_heads = 1, .head_dim = config.latent.key(), .latent_dim = config.latent.rank});
  info.kv_groups = {{.latent = true}};
  return std::unique_ptr<Model>(
      new DeepseekModel(std::move(info), config, std::move(ends), std::move(layers)));
}

}  // namespace lockstep::deepseek
