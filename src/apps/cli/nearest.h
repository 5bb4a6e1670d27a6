// The known word nearest to a mistyped one, for error messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// By edit distance, at most a third of the word's length; empty when none is that near. A "=value"
// at the end of `word` is not looked at.
std::string Nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace lockstep
