#include "text/stop_matcher.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/check.h"

namespace lockstep {

// A trie of the stop strings with failure links (Aho and Corasick, 1975): a step follows links up
// at most as often as steps went down before, so the whole is linear. State 0 is the root. Children
// are a list: no state has more of them than there are stop strings.
struct StopMatcher::Automaton {
  struct State {
    uint8_t byte = 0;          // on the way from the parent
    uint32_t child = 0;        // the first, 0 for none
    uint32_t sibling = 0;      // the next child of the parent, 0 for none
    uint32_t depth = 0;        // length of the string the state stands for
    uint32_t fail = 0;         // the longest proper suffix that is a state
    int64_t match = -1;        // index of the longest stop string that ends here
    uint32_t match_depth = 0;  // its length
  };
  std::vector<State> states{1};

  explicit Automaton(const std::vector<std::string>& stops) {
    for (size_t i = 0; i < stops.size(); ++i) Add(stops[i], static_cast<int64_t>(i));
    Link();
  }

  void Add(const std::string& stop, int64_t index) {
    if (stop.empty()) return;
    uint32_t state = 0;
    for (const char c : stop) {
      const auto byte = static_cast<uint8_t>(c);
      uint32_t child = Child(state, byte);
      if (child == 0) {
        child = static_cast<uint32_t>(states.size());
        const State made{
            .byte = byte, .sibling = states[state].child, .depth = states[state].depth + 1};
        states.push_back(made);
        states[state].child = child;
      }
      state = child;
    }
    // Of equal strings the first in the list counts.
    if (states[state].match < 0) {
      states[state].match = index;
      states[state].match_depth = states[state].depth;
    }
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
      if (at != 0 && states[at].match < 0) {
        states[at].match = states[fail].match;
        states[at].match_depth = states[fail].match_depth;
      }
      for (uint32_t child = states[at].child; child != 0; child = states[child].sibling) {
        states[child].fail = at == 0 ? 0 : Step(fail, states[child].byte);
        queue.push_back(child);
      }
    }
  }
};

StopMatcher::StopMatcher(const std::vector<std::string>& stops) {
  const bool any =
      std::any_of(stops.begin(), stops.end(), [](const auto& s) { return !s.empty(); });
  if (any) automaton_ = std::make_shared<const Automaton>(stops);
}

std::string StopMatcher::Push(std::string_view piece) {
  if (matched()) return {};
  if (automaton_ == nullptr) return std::string(piece);
  held_.append(piece);
  for (size_t i = held_.size() - piece.size(); i < held_.size(); ++i) {
    state_ = automaton_->Step(state_, static_cast<uint8_t>(held_[i]));
    const Automaton::State& state = automaton_->states[state_];
    if (state.match >= 0) {
      matched_index_ = state.match;
      std::string shown = held_.substr(0, i + 1 - state.match_depth);
      held_.clear();
      return shown;
    }
  }
  const size_t shown_size = held_.size() - automaton_->states[state_].depth;
  std::string shown = held_.substr(0, shown_size);
  held_.erase(0, shown_size);
  return shown;
}

std::string StopMatcher::Finish() {
  state_ = 0;
  return std::exchange(held_, {});
}

size_t StopMatcher::matched_index() const {
  LOCKSTEP_CHECK(matched());
  return static_cast<size_t>(matched_index_);
}

}  // namespace lockstep
