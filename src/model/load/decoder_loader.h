// DecoderLoader: loads what decoders have in common under the names that Hugging Face folders and
// GGUF files give it. What is an architecture's own it loads through `weights()`.
//
// Not thread-safe. Errors name the file and the tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "model/decoder_model.h"
#include "model/layers/gated_ffn.h"
#include "model/layers/mixture.h"
#include "model/layers/self_attention.h"
#include "model/weight_loader.h"

namespace lockstep {

class DecoderLoader {
 public:
  struct Style {
    bool gguf_rotates_pairs = false;  // GGUF keeps rotated pairs of q and k as neighbours
    float hf_norm_offset = 0.0f;      // added to the norms' weights that folders store
  };
  static Result<DecoderLoader> Create(std::shared_ptr<const Checkpoint> checkpoint,
                                      const LoadOptions& options, const DecoderDims& dims,
                                      const Style& style);

  // A name within layer `layer`, or outside the layers, as this checkpoint's kind has it.
  std::string In(int32_t layer, const char* hf, const char* gguf) const;
  std::string Top(const char* hf, const char* gguf) const { return gguf_ ? gguf : root_ + hf; }

  struct AttentionTraits {
    bool qkv_bias = false;  // needed; where there is one it is used in any case
    bool out_bias = false;
    bool head_norms = false;
    bool gated = false;  // q's rows are each head's queries and then its gates
  };
  Result<SelfAttention> LoadAttention(int32_t layer, const AttentionTraits& traits);
  Result<GatedFfn> LoadFfn(int32_t layer, Gate activation, bool needs_bias);
  // Of experts kept one by one, as Hugging Face has them, or stacked, as MLX and GGUF do.
  Result<Mixture> LoadMixture(int32_t layer, Gate activation, const MixtureDims& mixture);
  Result<RmsNorm> LoadNorm(const std::string& name, int32_t n);  // tensor `name`.weight
  // The layer's norms of [d_model].
  Result<RmsNorm> LoadNorm(int32_t layer, const char* hf, const char* gguf) {
    return LoadNorm(In(layer, hf, gguf), dims_.d_model);
  }
  Result<DecoderEnds> LoadEnds();

  // Ends the loading: every tensor must have been used.
  Result<ModelInfo> Finish(const std::string& architecture);

  WeightLoader& weights() { return weights_; }

 private:
  DecoderLoader(bool gguf, std::string root, WeightLoader weights, const DecoderDims& dims,
                const Style& style)
      : gguf_(gguf),
        root_(std::move(root)),
        weights_(std::move(weights)),
        dims_(dims),
        style_(style) {}

  bool gguf_;
  std::string root_;  // of a folder's names: "model." or, within other models, longer
  WeightLoader weights_;
  DecoderDims dims_;
  Style style_;
};

}  // namespace lockstep
