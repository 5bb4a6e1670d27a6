#include "text/utf8.h"

#include <cstdint>

namespace lockstep {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The length of the character that `lead` begins, or 0 if none does.
size_t LengthFromLead(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// Whether `byte` may follow at `position` (1 to 3) after `lead` (Unicode 15, table 3-7).
bool MayFollow(uint8_t lead, size_t position, uint8_t byte) {
  uint8_t low = 0x80, high = 0xBF;
  if (position == 1) {
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  return byte >= low && byte <= high;
}

}  // namespace

void Utf8Decoder::Push(std::string_view bytes, std::string* out) {
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (held_size_ > 0) {
      const auto lead = static_cast<uint8_t>(held_[0]);
      if (MayFollow(lead, held_size_, byte)) {
        held_[held_size_++] = c;
        if (held_size_ == LengthFromLead(lead)) {
          out->append(held_, held_size_);
          held_size_ = 0;
        }
        continue;
      }
      // The prefix is a maximal ill-formed part; this byte starts afresh.
      out->append(kReplacement);
      held_size_ = 0;
    }
    const size_t length = LengthFromLead(byte);
    if (length == 1) {
      out->push_back(c);
    } else if (length == 0) {
      out->append(kReplacement);
    } else {
      held_[0] = c;
      held_size_ = 1;
    }
  }
}

void Utf8Decoder::Finish(std::string* out) {
  if (held_size_ > 0) out->append(kReplacement);
  held_size_ = 0;
}

bool IsValidUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t length = LengthFromLead(lead);
    if (length == 0 || text.size() - i < length) return false;
    for (size_t k = 1; k < length; ++k) {
      if (!MayFollow(lead, k, static_cast<uint8_t>(text[i + k]))) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace lockstep
