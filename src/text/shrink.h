// How far the steps of a tokenizer.json before its vocabulary may shorten a text. With the longest
// token of the vocabulary this says how few tokens a text can have, before it is tokenised.
// Private to this folder. Thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep {

struct TextShrink {
  size_t factor = 1;  // what reaches the vocabulary has at least 1/factor of the text's bytes
  // Each byte of the text reaches the vocabulary as it is and as a character of its own: where one
  // has no token it is lost alone.
  bool bytes_alone = false;
};

// None: nothing is sure, since a step may drop any part of the text, or is not known here. An
// ill-formed `json` is none as well.
std::optional<TextShrink> ShrinkOf(std::string_view json);

}  // namespace lockstep
