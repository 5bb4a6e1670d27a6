#include "weights/printable.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <iterator>

namespace lockstep {
namespace {

// The length of the character that starts `text` when it is whole and may be shown as it is, else
// 0.
size_t ShownLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f && lead != '\\' ? 1 : 0;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (text.size() < length || !simdjson::validate_utf8(text.data(), length)) return 0;
  // U+0080 to U+009F are control characters too: terminals act on them.
  if (lead == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0) return 0;
  return length;
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
