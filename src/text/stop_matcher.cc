#include "text/stop_matcher.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/check.h"

namespace lockstep {

// A trie of the stop strings with failure links (Aho and Corasick, 1975): a step follows links up
// at most as often as steps went down before, so the whole is linear. State 0 is the root. Children
// are a list: no state has more of them than there are stop strings.
struct StopStrings::Automaton {
  struct State {
    uint32_t child = 0;    // the first, 0 for none
    uint32_t sibling = 0;  // the next child of the parent, 0 for none
    uint32_t depth = 0;    // length of the string the state stands for
    uint32_t fail = 0;     // the longest proper suffix that is a state
    int32_t match = -1;    // index of the longest stop string that ends here
    uint8_t byte = 0;      // on the way from the parent
  };
  std::vector<std::string> strings;
  std::vector<State> states;

  explicit Automaton(std::vector<std::string> stops) : strings(std::move(stops)) {
    size_t bytes = 1;
    for (const std::string& stop : strings) bytes += stop.size();
    states.reserve(bytes);
    states.emplace_back();
    for (size_t i = 0; i < strings.size(); ++i) Add(strings[i], static_cast<int32_t>(i));
    Link();
  }

  void Add(const std::string& stop, int32_t index) {
    uint32_t state = 0;
    for (const char c : stop) {
      const auto byte = static_cast<uint8_t>(c);
      uint32_t child = Child(state, byte);
      if (child == 0) {
        child = static_cast<uint32_t>(states.size());
        const State made{
            .sibling = states[state].child, .depth = states[state].depth + 1, .byte = byte};
        states.push_back(made);
        states[state].child = child;
      }
      state = child;
    }
    // Of equal strings the first in the list counts.
    if (states[state].match < 0) states[state].match = index;
  }

  uint32_t Child(uint32_t state, uint8_t byte) const {
    uint32_t child = states[state].child;
    while (child != 0 && states[child].byte != byte) child = states[child].sibling;
    return child;
  }

  uint32_t Step(uint32_t state, uint8_t byte) const {
    while (true) {
      const uint32_t child = Child(state, byte);
      if (child != 0 || state == 0) return child;
      state = states[state].fail;
    }
  }

  // Breadth first, so that a state's failure link is complete before it is needed.
  void Link() {
    std::deque<uint32_t> queue{0};
    while (!queue.empty()) {
      const uint32_t at = queue.front();
      queue.pop_front();
      const uint32_t fail = states[at].fail;
      if (at != 0 && states[at].match < 0) states[at].match = states[fail].match;
      for (uint32_t child = states[at].child; child != 0; child = states[child].sibling) {
        states[child].fail = at == 0 ? 0 : Step(fail, states[child].byte);
        queue.push_back(child);
      }
    }
  }
};

StopStrings::StopStrings(std::vector<std::string> strings) {
  std::erase_if(strings, [](const std::string& s) { return s.empty(); });
  if (!strings.empty()) automaton_ = std::make_shared<const Automaton>(std::move(strings));
}

const std::vector<std::string>& StopStrings::strings() const {
  static const std::vector<std::string> none;
  return empty() ? none : automaton_->strings;
}

std::string StopMatcher::Push(std::string_view piece) {
  if (matched()) return {};
  if (stops_.empty()) return std::string(piece);
  const StopStrings::Automaton& automaton = *stops_.automaton_;
  held_.append(piece);
  for (size_t i = held_.size() - piece.size(); i < held_.size(); ++i) {
    state_ = automaton.Step(state_, static_cast<uint8_t>(held_[i]));
    const int32_t match = automaton.states[state_].match;
    if (match >= 0) {
      matched_index_ = match;
      std::string shown =
          held_.substr(0, i + 1 - automaton.strings[static_cast<size_t>(match)].size());
      held_.clear();
      return shown;
    }
  }
  const size_t shown_size = held_.size() - automaton.states[state_].depth;
  std::string shown = held_.substr(0, shown_size);
  held_.erase(0, shown_size);
  return shown;
}

std::string StopMatcher::Finish() {
  state_ = 0;
  return std::exchange(held_, {});
}

const std::string& StopMatcher::matched_string() const {
  LOCKSTEP_CHECK(matched());
  return stops_.strings()[static_cast<size_t>(matched_index_)];
}

}  // namespace lockstep
