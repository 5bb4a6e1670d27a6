// What a message repeats of a client's own text. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

// After about `max_bytes` bytes, cut between characters, the rest is "...": an answer does not grow
// with its request.
std::string Excerpt(std::string_view text, size_t max_bytes = 100);

}  // namespace lockstep
