// Mixture: a feed-forward of several experts, of which a router picks a few for each token.
//
// The rows of a step are gathered by expert, so that an expert's weights are read once however many
// rows chose it. A row's result is its own all the same: its scores and choice come from that row
// alone (equal scores: the smaller expert first; by products in f32, whatever the format of the
// router's weights, since a choice is not a little off), each expert's product does not depend on
// the rows beside it, and the row adds up its experts in its own order, the best score first.
//
// Immutable after loading; thread-safe but for the buffers.
//
// Source: Shazeer et al., "Outrageously Large Neural Networks" (2017); Fedus et al., "Switch
// Transformers" (2021); kSigmoid: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/layers/decoder_buffers.h"
#include "model/layers/gated_ffn.h"

namespace lockstep {

inline constexpr int32_t kMaxExpertGroups = 64;

// What a router's scores pass through.
enum class Scoring { kSoftmax, kSigmoid };

struct MixtureDims {
  int32_t experts = 0;      // 0: there are none
  int32_t used = 0;         // by each token, at most `experts`
  int32_t d_expert = 0;     // the experts' feed-forward size
  bool normalised = false;  // the weights of a token's experts add up to 1
  Scoring scoring = Scoring::kSoftmax;
  int32_t groups = 1;       // kSigmoid: of experts side by side, of which a token uses some
  int32_t used_groups = 1;  // those whose best two scores add up to the most
  float scale = 1.0f;       // kSigmoid: of the weights
};

// What a step of the mixtures writes into; R = T * used rows, those of one expert side by side.
struct MixtureBuffers {
  struct Item {
    int32_t expert = 0;
    kernels::GemmRange range;
  };

  float* scores = nullptr;      // [T, experts padded]
  float* choice = nullptr;      // [T, experts padded], kSigmoid: what experts are chosen by
  int32_t* chosen = nullptr;    // [T, used], the best first
  float* weights = nullptr;     // [T, used]
  int32_t* row_of = nullptr;    // [T, used], where the token's row of that expert is
  int32_t* token_of = nullptr;  // [R]
  Activations gathered;         // [R, d_model]
  Activations gated;            // [R, d_expert]
  float* up = nullptr;          // [R, d_expert]
  float* out = nullptr;         // [R, d_model]
  std::vector<int32_t> begins;  // [experts + 1], first row of each
  std::vector<Item> items;

  static Result<MixtureBuffers> Allocate(Arena* arena, int32_t tokens, const DecoderDims& dims,
                                         const MixtureDims& mixture, const DecoderNeeds& needs);
};

struct Mixture {
  MixtureDims dims;
  Linear router;                  // [experts, d_model], never quantised
  std::vector<float> correction;  // kSigmoid: [experts], added to the scores for the choice alone
  std::vector<GatedFfn> experts;  // d_ff is d_expert

  // b->x += the mixture of b->normed.
  void Run(int32_t tokens, MixtureBuffers* m, DecoderBuffers* b, Compute* compute) const;

 private:
  void Route(int32_t tokens, MixtureBuffers* m, Compute* compute) const;
  void RouteBySoftmax(float* scores, int32_t* chosen, float* weights, Compute* compute) const;
  void RouteBySigmoid(float* scores, float* choice, int32_t* chosen, float* weights,
                      Compute* compute) const;
  void Gather(int32_t tokens, const Activations& normed, MixtureBuffers* m, Compute* compute) const;
  // Cuts the experts' products of [n, k] matrices into items.
  void Cut(int32_t n, MixtureBuffers* m, int32_t threads) const;
  void AddUp(int32_t tokens, MixtureBuffers* m, DecoderBuffers* b, Compute* compute) const;
};

}  // namespace lockstep
