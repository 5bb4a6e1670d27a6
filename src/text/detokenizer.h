// Detokenizer: token ids to text, one at a time. What Push and Finish return, concatenated, equals
// Tokenizer::Decode of the same ids with the same options, for every sequence of ids; a character
// is never split, and what was returned never changes. O(bytes of the token) a push.
// Not thread-safe: one a sequence. Keeps the tokenizer alive.
#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace lockstep {

class Detokenizer {
 public:
  explicit Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, DecodeOptions options = {});

  // The text that is certain now; often empty in the midst of a character.
  std::string Push(TokenId id);

  // The rest: an unfinished character is U+FFFD. Afterwards the detokenizer is as new.
  std::string Finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  DecodeOptions options_;
  Utf8Decoder utf8_;
  bool at_start_ = true;  // no byte has been taken yet
};

}  // namespace lockstep
