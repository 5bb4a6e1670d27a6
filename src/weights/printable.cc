#include "weights/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace lockstep {
namespace {

// The length of the character that starts `text` when it is well-formed UTF-8 (no overlong form, no
// surrogate, at most U+10FFFF) and may be shown as it is, else 0.
size_t ShownLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f && lead != '\\' ? 1 : 0;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  // U+0080 to U+009F are control characters too: terminals act on them.
  return code < 0xa0 ? 0 : length;
}

}  // namespace

std::string Printable(std::string_view bytes, size_t max_bytes) {
  std::string out;
  size_t at = 0;
  while (at < bytes.size()) {
    if (at >= max_bytes) return out + "...";
    if (const size_t length = ShownLength(bytes.substr(at)); length > 0) {
      out += bytes.substr(at, length);
      at += length;
      continue;
    }
    const char c = bytes[at++];
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace lockstep
