#include "api/token_trail.h"

#include <algorithm>

namespace lockstep {

void TokenTrail::Push(TokenEvent token) {
  ShownToken shown;
  utf8_.Push(token.bytes, &shown.text);
  shown.bytes = std::move(token.bytes);
  shown.logprobs = std::move(token.logprobs);
  held_.push_back(std::move(shown));
}

std::vector<ShownToken> TokenTrail::Release(size_t text_bytes) {
  std::vector<ShownToken> out;
  // Tokens without text of their own (parts of a character) leave with the one that completes it.
  size_t end = released_bytes_;
  size_t count = 0;
  for (size_t i = 0; i < held_.size(); ++i) {
    end += held_[i].text.size();
    if (end > text_bytes) break;
    if (held_[i].text.empty()) continue;
    count = i + 1;
    released_bytes_ = end;
  }
  for (; count > 0; --count) {
    out.push_back(std::move(held_.front()));
    held_.pop_front();
  }
  return out;
}

std::vector<ShownToken> TokenTrail::Finish(size_t text_bytes, bool cut) {
  if (!held_.empty()) utf8_.Finish(&held_.back().text);
  std::vector<ShownToken> out;
  for (; !held_.empty(); held_.pop_front()) {
    ShownToken& token = held_.front();
    if (cut) {
      if (released_bytes_ >= text_bytes) break;
      const size_t room = text_bytes - released_bytes_;
      if (token.text.size() > room) {
        token.text.resize(room);
        token.bytes = token.text;
      }
    }
    released_bytes_ += token.text.size();
    out.push_back(std::move(token));
  }
  held_.clear();
  return out;
}

}  // namespace lockstep
