#include "sampling/processors.h"

#include <limits>

namespace lockstep {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void PenalizeRepetition(const StepRow& row, float penalty, TokenCounts* counts,
                        std::span<float> logits) {
  if (penalty == 1.0f) return;
  counts->Reset(static_cast<int32_t>(logits.size()));
  for (TokenId id : row.sequence) counts->Add(id);
  for (TokenId id : counts->seen()) {
    float& logit = logits[id];
    logit = logit > 0.0f ? logit / penalty : logit * penalty;
  }
}

void PenalizePresence(const StepRow& row, float presence, float frequency, TokenCounts* counts,
                      std::span<float> logits) {
  if (presence == 0.0f && frequency == 0.0f) return;
  counts->Reset(static_cast<int32_t>(logits.size()));
  for (TokenId id : row.sequence.subspan(row.prompt_tokens)) counts->Add(id);
  for (TokenId id : counts->seen()) {
    logits[id] -= frequency * static_cast<float>(counts->Count(id));
    logits[id] -= presence;
  }
}

}  // namespace

void TokenCounts::Reset(int32_t vocab_size) {
  for (TokenId id : seen_) counts_[id] = 0;
  seen_.clear();
  counts_.resize(vocab_size);
}

void ProcessLogits(const StepRow& row, TokenCounts* counts, std::span<float> logits) {
  const SamplingParams& params = *row.sampling;
  for (const auto& [id, bias] : params.logit_bias) logits[id] += bias;
  PenalizeRepetition(row, params.repetition_penalty, counts, logits);
  PenalizePresence(row, params.presence_penalty, params.frequency_penalty, counts, logits);
  for (TokenId id : row.banned) logits[id] = kNever;
  if (!row.mask.empty()) {
    for (size_t t = 0; t < logits.size(); ++t) {
      if ((row.mask[t / 32] >> (t % 32) & 1) == 0) logits[t] = kNever;
    }
  }
}

}  // namespace lockstep
