#include "text/json_scan.h"

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view SkipSpace(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text;
}

// Cuts a value off `text`.
std::string_view TakeValue(std::string_view* text) {
  *text = SkipSpace(*text);
  JsonScanner scanner;
  const std::string_view value = text->substr(0, scanner.Push(*text));
  text->remove_prefix(value.size());
  return value;
}

}  // namespace

size_t JsonScanner::Push(std::string_view piece) {
  for (size_t i = 0; i < piece.size() && !done_; ++i) {
    const char c = piece[i];
    switch (state_) {
      case State::kBefore:
        if (kSpace.find(c) != std::string_view::npos) break;
        if (c == '"') {
          state_ = State::kString;
        } else if (c == '{' || c == '[') {
          ++depth_;
          state_ = State::kContainer;
        } else {
          state_ = State::kWord;
        }
        break;
      case State::kWord:
        if (kSpace.find(c) != std::string_view::npos || c == ',' || c == '}' || c == ']') {
          done_ = true;
          return i;
        }
        break;
      case State::kString:
        if (c == '\\') state_ = State::kEscape;
        if (c != '"') break;
        state_ = State::kContainer;
        done_ = depth_ == 0;
        break;
      case State::kEscape:
        state_ = State::kString;
        break;
      case State::kContainer:
        if (c == '"') state_ = State::kString;
        if (c == '{' || c == '[') ++depth_;
        if (c == '}' || c == ']') done_ = --depth_ == 0;
        break;
    }
    if (done_) return i + 1;
  }
  return done_ ? 0 : piece.size();
}

std::optional<std::string_view> FindMember(std::string_view object, std::string_view name) {
  std::string_view rest = SkipSpace(object);
  if (!rest.starts_with('{')) return std::nullopt;
  rest.remove_prefix(1);
  while (rest = SkipSpace(rest), rest.starts_with('"')) {
    const std::string_view key = TakeValue(&rest);
    rest = SkipSpace(rest);
    if (!rest.starts_with(':')) return std::nullopt;
    rest.remove_prefix(1);
    const std::string_view value = TakeValue(&rest);
    if (nlohmann::json::parse(key, nullptr, false) == name) return value;
    rest = SkipSpace(rest);
    if (rest.starts_with(',')) rest.remove_prefix(1);
  }
  return std::nullopt;
}

}  // namespace lockstep
