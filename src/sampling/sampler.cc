#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "sampling/best_tokens.h"
#include "sampling/logprobs.h"

namespace lockstep {
namespace {

constexpr float kGreedyBelow = 1e-5f;
constexpr size_t kPiece = 512;  // weights that are skipped or walked together

// The sum of weights[first, first + kPiece), in eight lanes so that the additions overlap; the
// order is fixed.
double SumPiece(const std::vector<float>& weights, size_t first) {
  const size_t end = std::min(weights.size(), first + kPiece);
  double lanes[8] = {};
  for (size_t i = first; i < end; ++i) lanes[(i - first) % 8] += weights[i];
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

bool ChangesLogits(const StepRow& row) {
  const SamplingParams& p = *row.sampling;
  return !p.logit_bias.empty() || p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f ||
         p.frequency_penalty != 0.0f || !row.banned.empty() || !row.mask.empty();
}

Status NoTokenLeft(const StepRow& row) {
  const bool biased = !row.sampling->logit_bias.empty();
  return FailedPrecondition(
      "no token may be drawn: 'min_tokens' with the ids that end an answer ('stop_token_ids'), "
      "'logit_bias' and the grammar together leave none",
      biased               ? "logit_bias"
      : row.banned.empty() ? ""
                           : "stop_token_ids");
}

}  // namespace

void Sampler::Sample(const StepRow& row, std::span<float> logits, RowOutput* output) {
  const SamplingParams& params = *row.sampling;
  const int32_t vocab = static_cast<int32_t>(logits.size());
  kernels::MaxIndex best = kernels_.max(logits.data(), vocab);
  if (!std::isfinite(best.value)) {
    output->status = LogitsNotFinite();
    return;
  }
  // The raw distribution is written down before anything changes the logits; the chosen token
  // follows.
  LogNormalizer normalizer;
  if (params.logprobs >= 0) {
    normalizer = Normalize(kernels_, logits);
    output->status = FillLogprobs(normalizer, logits, -1, params.logprobs, &output->logprobs);
    if (!output->status.ok()) return;
  }
  std::span<const float> raw = logits;
  if (ChangesLogits(row)) {
    if (params.logprobs >= 0) {
      raw_.assign(logits.begin(), logits.end());
      raw = raw_;
    }
    ProcessLogits(row, &counts_, logits);
    best = kernels_.max(logits.data(), vocab);
    if (!std::isfinite(best.value)) {
      output->status = NoTokenLeft(row);
      return;
    }
  }
  TokenId token = best.index;
  if (params.temperature >= kGreedyBelow) {
    const int32_t position = row.begin + row.count;
    const double uniform =
        PhiloxUniform(params.seed, params.stream, static_cast<uint64_t>(position));
    const bool truncates =
        (params.top_k > 0 && params.top_k < vocab) || params.top_p < 1.0f || params.min_p > 0.0f;
    token = truncates ? DrawTruncated(params, best.value, uniform, logits)
                      : DrawFromAll(best.value, params.temperature, uniform, logits);
  }
  output->token = token;
  if (params.logprobs >= 0) {
    output->logprobs.token = token;
    output->logprobs.logprob = normalizer(raw[token]);
  }
}

TokenId Sampler::DrawFromAll(float max, float temperature, double uniform,
                             std::span<const float> logits) {
  weights_.resize(logits.size());
  kernels_.exp(logits.data(), max, 1.0f / temperature, static_cast<int32_t>(logits.size()),
               weights_.data());
  return Draw(uniform);
}

TokenId Sampler::DrawTruncated(const SamplingParams& params, float max, double uniform,
                               std::span<const float> logits) {
  Truncate(params, max, logits);
  Weigh(max, 1.0f / params.temperature);
  return candidates_[Draw(uniform)].id;
}

void Sampler::Truncate(const SamplingParams& params, float max, std::span<const float> logits) {
  const size_t vocab = logits.size();
  double total = 0.0;
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < vocab) {
    BestTokens(logits, params.top_k, &candidates_);
    Weigh(max, 1.0f);
    total = SumWeights();
  } else {
    weights_.resize(vocab);
    kernels_.exp(logits.data(), max, 1.0f, static_cast<int32_t>(vocab), weights_.data());
    total = SumWeights();
    // What is lighter than this cannot be kept: all such tokens together are less than top_p may
    // leave out (halved, so that no rounding can matter). The rest, usually few, is sorted.
    const double rest = params.top_p < 1.0f ? 0.5 * (1.0 - params.top_p) * total / vocab : 0.0;
    const float lightest = std::max(params.min_p, static_cast<float>(rest));
    candidates_.clear();
    for (size_t t = 0; t < vocab; ++t) {
      if (weights_[t] >= lightest) candidates_.push_back({static_cast<TokenId>(t), logits[t]});
    }
    std::sort(candidates_.begin(), candidates_.end(), Better);
    Weigh(max, 1.0f);
  }
  size_t keep = 0;
  double mass = 0.0;
  while (keep < candidates_.size() && (keep == 0 || weights_[keep] >= params.min_p)) {
    mass += weights_[keep++];
    if (params.top_p < 1.0f && mass >= params.top_p * total) break;
  }
  candidates_.resize(keep);
}

void Sampler::Weigh(float max, float inverse_temperature) {
  weights_.resize(candidates_.size());
  for (size_t i = 0; i < candidates_.size(); ++i) weights_[i] = candidates_[i].logprob;
  kernels_.exp(weights_.data(), max, inverse_temperature, static_cast<int32_t>(weights_.size()),
               weights_.data());
}

double Sampler::SumWeights() const {
  double total = 0.0;
  for (size_t first = 0; first < weights_.size(); first += kPiece)
    total += SumPiece(weights_, first);
  return total;
}

size_t Sampler::Draw(double uniform) const {
  const size_t n = weights_.size();
  double left = uniform * SumWeights();
  for (size_t first = 0; first < n; first += kPiece) {
    const double sum = SumPiece(weights_, first);
    if (left >= sum) {
      left -= sum;
      continue;
    }
    for (size_t i = first; i < std::min(n, first + kPiece); ++i) {
      left -= weights_[i];
      if (left < 0.0) return i;
    }
  }
  // Rounding left a crumb beyond the end.
  size_t last = n - 1;
  while (last > 0 && weights_[last] <= 0.0f) --last;
  return last;
}

}  // namespace lockstep
