// TokenTrail: which generated tokens may be shown with the text that was shown so far, for
// log-probabilities. A token is let out once its text is out, so that nothing of a stop string
// leaves by this door; the token that straddles the end of the answer is cut there.
// Not thread-safe: one a choice.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "core/step.h"
#include "engine/request.h"
#include "text/utf8.h"

namespace lockstep {

struct ShownToken {
  std::string text;   // what it adds to the answer's text: joined, they are that text
  std::string bytes;  // its own bytes; perhaps a part of a character
  PositionLogprobs logprobs;
};

class TokenTrail {
 public:
  void Push(TokenEvent token);
  // The tokens whose text lies within the first `text_bytes` bytes of the answer.
  std::vector<ShownToken> Release(size_t text_bytes);
  // The answer is over and has `text_bytes` bytes: the rest. `cut` says that a stop string ended
  // it.
  std::vector<ShownToken> Finish(size_t text_bytes, bool cut);

 private:
  std::deque<ShownToken> held_;
  size_t released_bytes_ = 0;  // of text, in the tokens let out so far
  Utf8Decoder utf8_;
};

}  // namespace lockstep
