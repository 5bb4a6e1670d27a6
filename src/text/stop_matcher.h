// StopMatcher: finds the first of several stop strings in text that arrives in pieces, and never
// lets a byte of it through. The match that ends first wins; of those that end together, the one
// that begins first. Empty stop strings are ignored. Linear in the text, whatever the strings
// (Aho and Corasick, "Efficient string matching", CACM 18(6), 1975).
// Not thread-safe: one a sequence. Text and stop strings are UTF-8; pieces need not split at
// characters, but if they do, so does the output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class StopMatcher {
 public:
  StopMatcher() = default;  // matches nothing
  explicit StopMatcher(const std::vector<std::string>& stops);

  // The text that can be shown now: all but what may still be the beginning of a stop string. After
  // a match, empty.
  std::string Push(std::string_view piece);

  // The text held back, when the sequence ended without a match. Empty after a match.
  std::string Finish();

  bool matched() const { return matched_index_ >= 0; }
  // The index of the matched string in the constructor's list. REQUIRES: matched().
  size_t matched_index() const;

 private:
  struct Automaton;
  std::shared_ptr<const Automaton> automaton_;
  uint32_t state_ = 0;
  std::string held_;  // the text of the current state: the longest suffix that may begin a stop
  int64_t matched_index_ = -1;
};

}  // namespace lockstep
