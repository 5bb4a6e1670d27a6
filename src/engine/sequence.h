// A request on its way through the engine: pending -> computing prompt -> decoding -> finished,
// failed or cancelled. Knows its tokens, how far they are computed, and its place in the cache; not
// when it runs (scheduler.h). The last three states may follow any other.
//
// Not thread-safe: the engine's thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/kv_manager.h"
#include "core/step.h"
#include "core/types.h"
#include "engine/output_processor.h"
#include "engine/request.h"
#include "grammar/grammar.h"

namespace lockstep {

enum class SequenceState { kPending, kComputingPrompt, kDecoding, kFinished, kFailed, kCancelled };

class Sequence {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `max_tokens`: CheckRequest's answer. Makes room for every token there may be, so that steps
  // append without an allocation.
  Sequence(RequestId id, GenerationRequest request, int32_t max_tokens,
           std::shared_ptr<const Tokenizer> tokenizer, const std::vector<TokenId>& eos_ids,
           TimePoint submitted);

  RequestId id() const { return id_; }
  void set_id(RequestId id) { id_ = id; }  // REQUIRES: before anybody else knows it
  const GenerationRequest& request() const { return request_; }  // its prompt has moved to tokens()
  EventSink& sink() const { return *request_.sink; }
  SequenceState state() const { return state_; }
  bool live() const { return state_ <= SequenceState::kDecoding; }

  const std::vector<TokenId>& tokens() const { return tokens_; }  // prompt and output
  int32_t prompt_tokens() const { return prompt_tokens_; }
  int32_t worst_case_tokens() const { return prompt_tokens_ + max_tokens_; }
  int32_t computed() const { return computed_; }  // tokens whose keys and values are cached
  int32_t uncomputed() const { return static_cast<int32_t>(tokens_.size()) - computed_; }
  bool wants_tokens() const { return max_tokens_ > 0; }
  // Of the next token.
  std::span<const TokenId> banned() const { return output_.banned(); }
  std::span<const uint32_t> mask() const;  // empty: no grammar

  // Moves the grammar on, before Advance takes the same token over. Errors: this answer cannot go
  // on.
  Status FollowGrammar(TokenId token);
  bool has_grammar() const { return matcher_.ok() && *matcher_ != nullptr; }
  // Whose mask is to be filled after FollowGrammar. REQUIRES: has_grammar().
  TokenMatcher* matcher() { return matcher_->get(); }

  // Pending -> computing prompt. REQUIRES: pending.
  void Start(CacheSlot slot);

  // How much of the prompt may come from the cache: not the last token, whose logits are needed,
  // and nothing when log-probabilities of the prompt are.
  int32_t adoptable() const { return request_.prompt_logprobs >= 0 ? 0 : prompt_tokens_ - 1; }
  // How much of the prompt a longer one is likely to begin with.
  int32_t stable() const {
    return request_.stable_tokens > 0 ? request_.stable_tokens : prompt_tokens_ - 1;
  }
  // So many tokens are computed now, by others as well; how many more it has taken over than it
  // ever had. REQUIRES:
  // computing prompt, computed <= adoptable() or as before.
  int32_t Adopt(int32_t computed);
  int32_t adopted() const { return adopted_; }
  // Nothing of it is computed any more: what it had taken over is no good, or gone. REQUIRES:
  // computing prompt.
  void StartOver();

  // Its prompt is being restored: it has no steps until that is done (prefix_transfer.h).
  bool loading() const { return loading_; }
  void set_loading(bool loading) { loading_ = loading; }
  // Whether it was looked for where prefixes are kept beside the cache.
  bool asked_store() const { return asked_store_; }
  void set_asked_store(bool asked) { asked_store_ = asked; }

  CacheSlot slot() const { return slot_; }  // REQUIRES: started and live

  // Takes over what the executor made of `count` more tokens and leaves the client's share in
  // `event`; whether there is any. Ends the sequence when this was its last step.
  bool Advance(int32_t count, RowOutput* output, GenerationEvent* event);

  // Ends it for a reason of the engine's (kCancelled, kError) and says so in `event`.
  void End(FinishReason reason, Status status, GenerationEvent* event);

  // The same without text held back, and without an allocation.
  void Abandon(FinishReason reason, Status status, GenerationEvent* event);

  // Its sink is full: keeps its blocks and takes no steps.
  bool paused() const { return paused_; }
  void set_paused(bool paused) { paused_ = paused; }

  TimePoint submitted() const { return submitted_; }
  TimePoint last_token() const { return last_token_; }  // the epoch before the first one
  void set_last_token(TimePoint time) { last_token_ = time; }

 private:
  void SetEnded(FinishReason reason);

  RequestId id_;
  GenerationRequest request_;
  const int32_t max_tokens_;
  const int32_t prompt_tokens_;
  OutputProcessor output_;                         // reads request_ before its prompt moves
  Result<std::unique_ptr<TokenMatcher>> matcher_;  // null: no grammar
  std::vector<TokenId> tokens_;
  std::vector<PositionLogprobs> prompt_logprobs_;  // until the first event takes them
  int32_t computed_ = 0;
  int32_t adopted_ = 0;  // of them
  int32_t counted_ = 0;  // the most that adopted_ was: what Adopt has told
  SequenceState state_ = SequenceState::kPending;
  CacheSlot slot_ = -1;
  bool paused_ = false;
  bool loading_ = false;
  bool asked_store_ = false;
  const TimePoint submitted_;
  TimePoint last_token_{};
};

}  // namespace lockstep
