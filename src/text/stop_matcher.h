// StopStrings: strings that end a text, compiled once and shared. StopMatcher: finds the first of
// them in text that arrives in pieces, and never lets a byte of it through. The match that ends
// first wins; of those that end together, the one that begins first. Empty strings are ignored.
// Linear in the text, whatever the strings (Aho and Corasick, "Efficient string matching", CACM
// 18(6), 1975).
//
// StopStrings is immutable; its copies share one automaton of 24 bytes for each byte of the
// strings. A StopMatcher is small, not thread-safe, and one a sequence. Text and strings are UTF-8;
// pieces need not split at characters, but if they do, so does the output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

class StopStrings {
 public:
  StopStrings() = default;                                 // none
  StopStrings(std::initializer_list<std::string> strings)  // NOLINT: implicit by design
      : StopStrings(std::vector<std::string>(strings)) {}
  // REQUIRES: less than 2^32 bytes in all.
  explicit StopStrings(std::vector<std::string> strings);

  bool empty() const { return automaton_ == nullptr; }
  const std::vector<std::string>& strings() const;  // without the empty ones

 private:
  friend class StopMatcher;
  struct Automaton;
  std::shared_ptr<const Automaton> automaton_;
};

class StopMatcher {
 public:
  StopMatcher() = default;  // matches nothing
  explicit StopMatcher(StopStrings stops) : stops_(std::move(stops)) {}

  // The text that can be shown now: all but what may still be the beginning of a stop string. After
  // a match, empty.
  std::string Push(std::string_view piece);

  // The text held back, when the sequence ended without a match. Empty after a match.
  std::string Finish();

  bool matched() const { return matched_index_ >= 0; }
  const std::string& matched_string() const;  // REQUIRES: matched()

 private:
  StopStrings stops_;
  uint32_t state_ = 0;
  std::string held_;  // the text of the current state: the longest suffix that may begin a stop
  int32_t matched_index_ = -1;
};

}  // namespace lockstep
