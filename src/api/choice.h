// What both generation endpoints keep of one request while its events come: the text so far, the
// tokens that may be shown, how it ended. Also the small JSON they share. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/token_trail.h"
#include "base/status.h"
#include "engine/request.h"

namespace lockstep {

// What of an event may be shown.
struct ChoiceDelta {
  std::string text;
  std::vector<ShownToken> tokens;  // when log-probabilities were asked
  bool ended = false;
};

class Choice {
 public:
  // Errors: the request failed or was cancelled; its status says why.
  Result<ChoiceDelta> Take(GenerationEvent event, bool want_tokens);

  bool ended() const { return end_.has_value(); }
  const GenerationEnd& end() const { return *end_; }  // REQUIRES: ended()
  const char* finish_reason() const;                  // REQUIRES: ended()

  // Mean log-probability of the generated tokens, for best_of. Needs want_tokens.
  double mean_logprob() const { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }

 private:
  TokenTrail trail_;
  size_t text_bytes_ = 0;
  double sum_ = 0;
  int64_t count_ = 0;
  std::optional<GenerationEnd> end_;
};

// The members that head every answer and chunk.
struct AnswerHead {
  std::string id;
  std::string object;
  int64_t created = 0;
  std::string model;
  std::string fingerprint;
};
Json HeadJson(const AnswerHead& head);

Json UsageJson(const Usage& usage);

}  // namespace lockstep
