// Sampler: chooses the next token of a row from its logits. A pure function of the row and the
// logits: its random number is Philox(seed, stream, position), so neither neighbours nor history of
// the process matter. The object only holds memory that is reused; one a thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/step.h"
#include "kernels/kernels.h"
#include "sampling/processors.h"

namespace lockstep {

class Sampler {
 public:
  explicit Sampler(const kernels::KernelTable& kernels) : kernels_(kernels.elementwise) {}

  // Samples the token that follows row.sequence[begin + count - 1] and fills its log-probabilities
  // when asked. `logits` [vocab] is overwritten. output->status: kInternal when a logit is not a
  // number, kFailedPrecondition when no token may be drawn. REQUIRES: row.sampling is not null.
  void Sample(const StepRow& row, std::span<float> logits, RowOutput* output);

 private:
  // The token drawn from the whole vocabulary at `temperature`; `max` is the largest logit.
  TokenId DrawFromAll(float max, float temperature, double uniform, std::span<const float> logits);
  // The same after top_k, top_p and min_p.
  TokenId DrawTruncated(const SamplingParams& params, float max, double uniform,
                        std::span<const float> logits);
  // Puts the tokens that top_k, top_p and min_p keep into candidates_, best first.
  void Truncate(const SamplingParams& params, float max, std::span<const float> logits);

  // weights_[i] = exp((candidates_[i]'s logit - max) * inverse_temperature).
  void Weigh(float max, float inverse_temperature);
  double SumWeights() const;
  // The index that `uniform` in [0, 1) falls on when weights_ are laid end to end.
  size_t Draw(double uniform) const;

  const kernels::ElementwiseKernels& kernels_;
  TokenCounts counts_;
  std::vector<TokenLogprob> candidates_;
  std::vector<float> weights_;
  std::vector<float>
      raw_;  // the logits before they were changed, when their log-probabilities are wanted
};

}  // namespace lockstep
