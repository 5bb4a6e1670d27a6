// What the engine is asked and what it answers, as plain data. Made by api/ (and the command line),
// validated there; immutable once submitted.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/out_of_memory.h"
#include "base/status.h"
#include "core/sampling_params.h"
#include "core/step.h"
#include "core/types.h"
#include "grammar/grammar.h"
#include "text/stop_matcher.h"

namespace lockstep {

class EventSink;

using RequestId = uint64_t;

struct GenerationRequest {
  std::vector<TokenId> prompt;  // not empty
  SamplingParams sampling;
  std::optional<uint64_t> seed;         // absent: the engine draws one; copied into sampling.seed
  int32_t max_tokens = -1;              // -1: the rest of the context; 0: compute the prompt only
  int32_t min_tokens = 0;               // end-of-sequence and stop ids are banned before this many
  StopStrings stop;                     // earliest match wins and is not shown
  std::vector<TokenId> stop_token_ids;  // beside the model's own end-of-sequence ids
  bool ignore_eos = false;              // the model's end-of-sequence ids do not end it
  bool skip_special_tokens = true;
  // Not null: what the answer must look like. It ends when that is complete, and the model's
  // end-of-sequence ids end it wherever the grammar allows an end, whatever ignore_eos says.
  std::shared_ptr<const Grammar> grammar;
  int32_t prompt_logprobs = -1;  // >= 0: as StepRow::prompt_logprobs, sent with the first event
  // > 0: the conversation's next prompt will begin with so many of this one's tokens; what follows
  // (the opening of the answer) it need not contain. Says where a state is worth keeping.
  int32_t stable_tokens = 0;
  std::string cache_salt;  // cached prefixes are shared among requests of the same salt alone
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::shared_ptr<EventSink> sink;  // never null
};

enum class FinishReason {
  kStop,       // end-of-sequence, stop id or stop string
  kLength,     // max_tokens or the context's end
  kCancelled,  // the caller, a deadline or a shutdown
  kError,      // this row failed: GenerationEnd::status says why
};

struct Usage {
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;  // an end-of-sequence token counts
  int32_t cached_tokens = 0;      // prompt tokens that were not computed for this request
};

// A generated token. Every token is reported once, in order, the end-of-sequence token excepted.
struct TokenEvent {
  TokenId id = 0;
  std::string bytes;          // exactly what it adds to the output; may be part of a character
  PositionLogprobs logprobs;  // filled when sampling.logprobs >= 0
};

struct GenerationEnd {
  FinishReason reason = FinishReason::kStop;
  std::string stop;                   // the stop string that matched, if one did
  std::optional<TokenId> stop_token;  // the stop id that ended it, if one did
  Status status;                      // not OK for kError and for deadline / shutdown
  Usage usage;
};

struct GenerationEvent {
  std::string text;                // valid UTF-8 that is certain to be part of the answer
  std::vector<TokenEvent> tokens;  // the tokens since the last event; their text may be held back
  std::vector<PositionLogprobs> prompt;  // first event only, when asked: entry i is the
                                         // distribution after prompt[i]
  std::optional<GenerationEnd> end;      // last event only
};

// Takes a request's events, on the engine's thread. Implementations are bounded and never block; a
// sink that throws or is slow concerns its own request alone.
class EventSink {
 public:
  enum class Answer {
    kReady,   // taken, send more
    kFull,    // taken; pause the sequence until Engine::Wake says that ready() may have changed
    kClosed,  // the consumer is gone: cancel
  };
  virtual ~EventSink() = default;
  virtual Answer Offer(GenerationEvent event) = 0;
  // Whether a paused sequence may go on. Thread-safe.
  virtual bool ready() const = 0;
};

}  // namespace lockstep
