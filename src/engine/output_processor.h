// Turns the tokens of one sequence into what its client sees, and decides where the answer ends:
// detokeniser, stop strings, end-of-sequence and stop ids, length, usage.
//
// - An end-of-sequence id or a stop id ends the answer with kStop, on the last allowed token too.
// It
//   is never shown nor reported, and counts as one completion token.
// - A stop string ends it with kStop at the token that completes it. Of the text, nothing from the
//   match on is shown. Every token is reported all the same, those of the stop string included (so
//   that log-probabilities and usage agree), as vLLM does; the bytes of the reported tokens may
//   then exceed the text.
// - A complete grammar ends it with kStop, at its last token, min_tokens or not.
// - The text of the first min_tokens tokens is not searched for stop strings, and the ids that
// would
//   end the answer are banned there.
//
// Not thread-safe: one a sequence, on the engine's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/step.h"
#include "core/types.h"
#include "engine/request.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace lockstep {

class OutputProcessor {
 public:
  // `max_tokens` is CheckRequest's answer; `eos_ids` are the model's own.
  OutputProcessor(const GenerationRequest& request, int32_t max_tokens,
                  std::shared_ptr<const Tokenizer> tokenizer, const std::vector<TokenId>& eos_ids);

  // So much of the prompt was not computed for this request.
  void set_cached_tokens(int32_t tokens) { usage_.cached_tokens = tokens; }

  // The ids that may not be drawn as the next token; ascending.
  std::span<const TokenId> banned() const;

  // Takes the next token; `complete`: it completes the grammar. Adds to `event` what is known now,
  // with `end` when this ends the answer. REQUIRES: nothing ended it before.
  void Push(TokenId id, PositionLogprobs logprobs, GenerationEvent* event, bool complete = false);

  // Ends the answer for a reason of the engine's; text held back is given out.
  void Finish(FinishReason reason, Status status, GenerationEvent* event);

  // The same without the text held back, and without an allocation: for when memory is short.
  void Abandon(FinishReason reason, Status status, GenerationEvent* event) const;

 private:
  void PushText(const std::string& piece, GenerationEvent* event);
  void End(FinishReason reason, GenerationEvent* event);

  std::shared_ptr<const Tokenizer> tokenizer_;
  Detokenizer detokenizer_;
  StopMatcher matcher_;
  std::vector<TokenId> eos_ids_;   // those that end this answer; ascending
  std::vector<TokenId> stop_ids_;  // ascending
  std::vector<TokenId> banned_;    // both; ascending
  int32_t min_tokens_;
  int32_t max_tokens_;
  bool skip_special_;
  Usage usage_;
};

}  // namespace lockstep
