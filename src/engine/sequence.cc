#include "engine/sequence.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace lockstep {

namespace {

Result<std::unique_ptr<TokenMatcher>> StartGrammar(const GenerationRequest& request) {
  if (request.grammar == nullptr) return std::unique_ptr<TokenMatcher>();
  return request.grammar->Start();
}

}  // namespace

Sequence::Sequence(RequestId id, GenerationRequest request, int32_t max_tokens,
                   std::shared_ptr<const Tokenizer> tokenizer, const std::vector<TokenId>& eos_ids,
                   TimePoint submitted)
    : id_(id),
      request_(std::move(request)),
      max_tokens_(max_tokens),
      prompt_tokens_(static_cast<int32_t>(request_.prompt.size())),
      output_(request_, max_tokens, std::move(tokenizer), eos_ids),
      matcher_(StartGrammar(request_)),
      tokens_(std::move(request_.prompt)),
      submitted_(submitted) {
  tokens_.reserve(static_cast<size_t>(worst_case_tokens()));
}

void Sequence::Start(CacheSlot slot) {
  LOCKSTEP_CHECK(state_ == SequenceState::kPending);
  state_ = SequenceState::kComputingPrompt;
  slot_ = slot;
}

int32_t Sequence::Adopt(int32_t computed) {
  LOCKSTEP_CHECK(state_ == SequenceState::kComputingPrompt && computed >= computed_);
  adopted_ += computed - std::exchange(computed_, computed);
  output_.set_cached_tokens(adopted_);
  const int32_t more = std::max(0, adopted_ - counted_);
  counted_ += more;
  return more;
}

void Sequence::StartOver() {
  LOCKSTEP_CHECK(state_ == SequenceState::kComputingPrompt);
  computed_ = adopted_ = 0;
  output_.set_cached_tokens(0);
  asked_store_ = false;
}

std::span<const uint32_t> Sequence::mask() const {
  return has_grammar() ? (*matcher_)->mask() : std::span<const uint32_t>();
}

Status Sequence::FollowGrammar(TokenId token) {
  if (!matcher_.ok()) return matcher_.status();
  return *matcher_ == nullptr ? OkStatus() : (*matcher_)->Accept(token);
}

bool Sequence::Advance(int32_t count, RowOutput* output, GenerationEvent* event) {
  LOCKSTEP_CHECK(state_ == SequenceState::kComputingPrompt || state_ == SequenceState::kDecoding);
  LOCKSTEP_CHECK(count <= uncomputed());
  computed_ += count;
  prompt_logprobs_.insert(prompt_logprobs_.end(), std::make_move_iterator(output->prompt.begin()),
                          std::make_move_iterator(output->prompt.end()));
  if (uncomputed() > 0) return false;

  state_ = SequenceState::kDecoding;
  event->prompt = std::exchange(prompt_logprobs_, {});
  if (wants_tokens()) {
    LOCKSTEP_CHECK(output->token >= 0);
    tokens_.push_back(output->token);
    const bool complete = has_grammar() && (*matcher_)->complete();
    output_.Push(output->token, std::move(output->logprobs), event, complete);
  } else {
    output_.Finish(FinishReason::kLength, OkStatus(), event);
  }
  if (event->end) SetEnded(event->end->reason);
  return true;
}

void Sequence::End(FinishReason reason, Status status, GenerationEvent* event) {
  LOCKSTEP_CHECK(live());
  output_.Finish(reason, std::move(status), event);
  SetEnded(reason);
}

void Sequence::Abandon(FinishReason reason, Status status, GenerationEvent* event) {
  LOCKSTEP_CHECK(live());
  output_.Abandon(reason, std::move(status), event);
  SetEnded(reason);
}

void Sequence::SetEnded(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kLength:
      state_ = SequenceState::kFinished;
      break;
    case FinishReason::kCancelled:
      state_ = SequenceState::kCancelled;
      break;
    case FinishReason::kError:
      state_ = SequenceState::kFailed;
      break;
  }
}

}  // namespace lockstep
