// Utf8Decoder: bytes in any pieces to valid UTF-8, each maximal ill-formed part replaced by U+FFFD
// (Unicode 15, section 3.9). The concatenation of all output equals the decoding of all input at
// once. Not thread-safe; a small value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

class Utf8Decoder {
 public:
  // Appends to `out` what is certain after `bytes`; at most three bytes are held back.
  void Push(std::string_view bytes, std::string* out);

  // Appends what is held back (one U+FFFD, or nothing) and starts over.
  void Finish(std::string* out);

 private:
  char held_[4] = {};  // a proper prefix of one character
  size_t held_size_ = 0;
};

bool IsValidUtf8(std::string_view text);

}  // namespace lockstep
