// Log-probabilities in OpenAI's two shapes: of chat completions (content[] with token, logprob,
// bytes, top_logprobs) and of completions (tokens, token_logprobs, top_logprobs, text_offset).
// Thread-safe but for LegacyLogprobs.
#pragma once

#include <cstdint>
#include <string_view>

#include "api/json.h"
#include "api/token_trail.h"
#include "text/tokenizer.h"

namespace lockstep {

// One entry of content[], with the `top` best (0: an empty list). A token that is a part of a
// character shows as U+FFFD; `bytes` holds what it is.
Json ChatLogprob(const ShownToken& token, int32_t top, const Tokenizer& tokenizer);

// The four parallel arrays, filled token by token. Not thread-safe.
class LegacyLogprobs {
 public:
  explicit LegacyLogprobs(int32_t top) : top_(top) {}

  // Joined, the texts are the answer's text; text_offset counts Unicode characters from its start.
  void Add(const ShownToken& token, const Tokenizer& tokenizer);
  // The first token of an echoed prompt, which nothing predicts.
  void AddUnpredicted(std::string_view text);

  bool empty() const { return tokens_.empty(); }
  // The arrays since the last call; offsets go on.
  Json Take();

 private:
  void AddText(std::string_view text);

  int32_t top_;
  int64_t offset_ = 0;
  Json tokens_ = Json::array();
  Json token_logprobs_ = Json::array();
  Json top_logprobs_ = Json::array();
  Json text_offset_ = Json::array();
};

}  // namespace lockstep
