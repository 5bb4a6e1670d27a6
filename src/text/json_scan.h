// JsonScanner: finds the end of a JSON value that comes in pieces. It does not check the JSON.
// Not thread-safe; a small value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

class JsonScanner {
 public:
  // How many bytes of `piece` belong to the value; done() when its last one is among them. White
  // space before the value belongs to it. A number or a word ends before the byte that follows it.
  size_t Push(std::string_view piece);
  bool done() const { return done_; }

 private:
  enum class State : uint8_t { kBefore, kWord, kString, kEscape, kContainer };
  State state_ = State::kBefore;
  int64_t depth_ = 0;
  bool done_ = false;
};

// The text of a member of `object`, which is valid JSON. Absent: there is none.
std::optional<std::string_view> FindMember(std::string_view object, std::string_view name);

}  // namespace lockstep
