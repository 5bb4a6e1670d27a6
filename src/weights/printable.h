// Printable: bytes from a file (keys, names, text) made fit for a message or a terminal. Pure;
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

// Valid UTF-8 stays; control characters, backslashes and bytes that are no UTF-8 are written as
// escapes (\n, \t, \xNN, a doubled backslash). After about `max_bytes` bytes of input the rest is
// replaced by "...".
std::string Printable(std::string_view bytes, size_t max_bytes = 160);

}  // namespace lockstep
