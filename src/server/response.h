// The bytes of an HTTP/1.1 response head, and of the pieces of a chunked body. Thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

struct ResponseHead {
  int status = 200;
  std::string content_type;  // empty: none is sent
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<size_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
};

// Up to and including the empty line.
std::string FormatHead(const ResponseHead& head);

// `data` as one chunk. REQUIRES: !data.empty().
std::string FormatChunk(std::string_view data);

inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::string_view ReasonPhrase(int status);

}  // namespace lockstep
