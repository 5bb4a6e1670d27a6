#include "sampling/processors.h"

#include <algorithm>
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

// Most words are all zeros (JSON's structure) or all ones (text).
void ApplyMask(std::span<const uint32_t> mask, std::span<float> logits) {
  for (size_t first = 0; first < logits.size(); first += 32) {
    const uint32_t word = mask[first / 32];
    if (word == UINT32_MAX) continue;
    const size_t count = std::min<size_t>(32, logits.size() - first);
    for (size_t bit = 0; bit < count; ++bit) {
      if ((word >> bit & 1) == 0) logits[first + bit] = kNever;
    }
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
  if (!row.mask.empty()) ApplyMask(row.mask, logits);
}

}  // namespace lockstep
