#include "model/load/decoder_loader.h"

#include <utility>
#include <vector>

namespace lockstep {
namespace {

// Where the decoder stands in a folder: alone, or in a model of text and images, as transformers
// writes it now, and as it did before and mlx-lm does.
constexpr const char* kRoots[] = {"model.", "model.language_model.", "language_model.model."};
constexpr const char* kHfHeads[] = {"lm_head", "language_model.lm_head"};

// GGUF may store the rows of q and k so that rotated pairs are neighbours; we rotate halves, as the
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

// Row r of ours: the queries of all heads, then their gates.
std::vector<int32_t> QueriesThenGates(int32_t heads, int32_t head_dim) {
  std::vector<int32_t> rows;
  for (const int32_t half : {0, 1}) {
    for (int32_t h = 0; h < heads; ++h) {
      for (int32_t r = 0; r < head_dim; ++r) rows.push_back((2 * h + half) * head_dim + r);
    }
  }
  return rows;
}

}  // namespace

Result<DecoderLoader> DecoderLoader::Create(std::shared_ptr<const Checkpoint> checkpoint,
                                            const LoadOptions& options, const DecoderDims& dims,
                                            const Style& style) {
  const bool gguf = checkpoint->gguf() != nullptr;
  std::string root = kRoots[0];
  for (const char* candidate : kRoots) {
    if (checkpoint->Find(std::string(candidate) + "embed_tokens.weight") != nullptr) {
      root = candidate;
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(WeightLoader weights,
                            WeightLoader::Create(std::move(checkpoint), options));
  return DecoderLoader(gguf, std::move(root), std::move(weights), dims, style);
}

std::string DecoderLoader::In(int32_t layer, const char* hf, const char* gguf) const {
  return Top("layers.", "blk.") + std::to_string(layer) + "." + (gguf_ ? gguf : hf);
}

Result<RmsNorm> DecoderLoader::LoadNorm(const std::string& name, int32_t n) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<float> weight, weights_.LoadVector(name + ".weight", n));
  if (!gguf_ && style_.hf_norm_offset != 0.0f) {
    for (float& w : weight) w += style_.hf_norm_offset;
  }
  return RmsNorm(std::move(weight), dims_.rms_eps);
}

Result<SelfAttention> DecoderLoader::LoadAttention(int32_t l, const AttentionTraits& traits) {
  const auto linear = [&](const std::string& name, int32_t n, int32_t k, bool needs_bias,
                          std::vector<int32_t> rows = {}) {
    return weights_.LoadLinear(name + ".weight", n, k,
                               {name + ".bias", needs_bias, std::move(rows)});
  };
  const auto rotated = [&](int32_t heads) {
    return gguf_ && style_.gguf_rotates_pairs ? HalvesFromPairs(heads, dims_.head_dim)
                                              : std::vector<int32_t>();
  };
  const int32_t d = dims_.d_model;
  SelfAttention a;
  a.gated = traits.gated;
  LOCKSTEP_ASSIGN_OR_RETURN(
      a.q, linear(In(l, "self_attn.q_proj", "attn_q"), (a.gated ? 2 : 1) * dims_.q_size(), d,
                  traits.qkv_bias,
                  a.gated ? QueriesThenGates(dims_.heads, dims_.head_dim) : rotated(dims_.heads)));
  LOCKSTEP_ASSIGN_OR_RETURN(a.k, linear(In(l, "self_attn.k_proj", "attn_k"), dims_.kv_size(), d,
                                        traits.qkv_bias, rotated(dims_.kv_heads)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      a.v, linear(In(l, "self_attn.v_proj", "attn_v"), dims_.kv_size(), d, traits.qkv_bias));
  LOCKSTEP_ASSIGN_OR_RETURN(
      a.out, linear(In(l, "self_attn.o_proj", "attn_output"), d, dims_.q_size(), traits.out_bias));
  if (traits.head_norms) {
    LOCKSTEP_ASSIGN_OR_RETURN(a.q_norm,
                              LoadNorm(In(l, "self_attn.q_norm", "attn_q_norm"), dims_.head_dim));
    LOCKSTEP_ASSIGN_OR_RETURN(a.k_norm,
                              LoadNorm(In(l, "self_attn.k_norm", "attn_k_norm"), dims_.head_dim));
  }
  // Computed from the configuration.
  if (!gguf_) weights_.Ignore(In(l, "self_attn.rotary_emb.inv_freq", ""));
  return a;
}

Result<GatedFfn> DecoderLoader::LoadFfn(int32_t l, Gate activation, bool needs_bias) {
  const auto linear = [&](const std::string& name, int32_t n, int32_t k) {
    return weights_.LoadLinear(name + ".weight", n, k, {name + ".bias", needs_bias, {}});
  };
  GatedFfn ffn;
  ffn.activation = activation;
  LOCKSTEP_ASSIGN_OR_RETURN(ffn.gate,
                            linear(In(l, "mlp.gate_proj", "ffn_gate"), dims_.d_ff, dims_.d_model));
  LOCKSTEP_ASSIGN_OR_RETURN(ffn.up,
                            linear(In(l, "mlp.up_proj", "ffn_up"), dims_.d_ff, dims_.d_model));
  LOCKSTEP_ASSIGN_OR_RETURN(ffn.down,
                            linear(In(l, "mlp.down_proj", "ffn_down"), dims_.d_model, dims_.d_ff));
  return ffn;
}

Result<Mixture> DecoderLoader::LoadMixture(int32_t l, Gate activation, const MixtureDims& mixture) {
  const int32_t d = dims_.d_model;
  Mixture m;
  m.dims = mixture;
  m.experts.resize(mixture.experts);
  for (GatedFfn& expert : m.experts) expert.activation = activation;
  LOCKSTEP_ASSIGN_OR_RETURN(
      m.router, weights_.LoadLinear(In(l, "mlp.gate", "ffn_gate_inp") + ".weight", mixture.experts,
                                    d, {.bias = "", .rows = {}, .f32 = true}));
  if (mixture.scoring == Scoring::kSigmoid) {
    const std::string correction = In(l, "mlp.gate.e_score_correction_bias", "exp_probs_b.bias");
    LOCKSTEP_ASSIGN_OR_RETURN(m.correction, weights_.LoadVector(correction, mixture.experts));
  }
  struct Part {
    Linear GatedFfn::* member;
    const char* hf;
    const char* gguf;
    int32_t n, k;
  };
  const Part parts[] = {{&GatedFfn::gate, "gate_proj", "ffn_gate_exps", mixture.d_expert, d},
                        {&GatedFfn::up, "up_proj", "ffn_up_exps", mixture.d_expert, d},
                        {&GatedFfn::down, "down_proj", "ffn_down_exps", d, mixture.d_expert}};
  for (const Part& part : parts) {
    const std::string stacked =
        In(l, (std::string("mlp.switch_mlp.") + part.hf).c_str(), part.gguf) + ".weight";
    if (gguf_ || weights_.Has(stacked)) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Linear> all,
                                weights_.LoadStack(stacked, mixture.experts, part.n, part.k));
      for (int32_t e = 0; e < mixture.experts; ++e) {
        m.experts[e].*part.member = std::move(all[e]);
      }
      continue;
    }
    for (int32_t e = 0; e < mixture.experts; ++e) {
      const std::string name = "mlp.experts." + std::to_string(e) + "." + part.hf + ".weight";
      LOCKSTEP_ASSIGN_OR_RETURN(m.experts[e].*part.member,
                                weights_.LoadLinear(In(l, name.c_str(), ""), part.n, part.k, {}));
    }
  }
  return m;
}

Result<DecoderEnds> DecoderLoader::LoadEnds() {
  DecoderEnds ends;
  const std::string embedding = Top("embed_tokens", "token_embd") + ".weight";
  LOCKSTEP_ASSIGN_OR_RETURN(ends.embedding,
                            weights_.LoadEmbedding(embedding, dims_.vocab_size, dims_.d_model));
  LOCKSTEP_ASSIGN_OR_RETURN(ends.final_norm, LoadNorm(Top("norm", "output_norm"), dims_.d_model));
  const bool nested = root_ != kRoots[0] && weights_.Has(std::string(kHfHeads[1]) + ".weight");
  const std::string head = std::string(gguf_ ? "output" : kHfHeads[nested ? 1 : 0]) + ".weight";
  if (dims_.tied_head) weights_.Ignore(head);  // a copy, where files keep one all the same
  LOCKSTEP_ASSIGN_OR_RETURN(ends.head, weights_.LoadLinear(dims_.tied_head ? embedding : head,
                                                           dims_.vocab_size, dims_.d_model, {}));
  return ends;
}

Result<ModelInfo> DecoderLoader::Finish(const std::string& architecture) {
  LOCKSTEP_RETURN_IF_ERROR(weights_.Finish());
  ModelInfo info;
  info.architecture = architecture;
  info.vocab_size = dims_.vocab_size;
  info.d_model = dims_.d_model;
  info.max_context = dims_.max_context;
  info.weight_bytes = weights_.packed_bytes();
  info.multiply_adds = weights_.multiply_adds();
  info.weights_hash = weights_.hash();
  info.integer_products = weights_.integer_products();
  return info;
}

}  // namespace lockstep
