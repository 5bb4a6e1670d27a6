// ByteCursor: reads little-endian values from a span, never past its end. A read that does not fit
// returns false and moves nothing. Does not own the bytes; thread-compatible.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace lockstep {

static_assert(std::endian::native == std::endian::little);

class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  template <typename T>
  [[nodiscard]] bool Read(T& out) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(&out, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  [[nodiscard]] bool Take(uint64_t length, std::span<const std::byte>& out) {
    if (remaining() < length) return false;
    out = bytes_.subspan(position_, length);
    position_ += length;
    return true;
  }

  // GGUF's string: a u64 length and that many bytes.
  [[nodiscard]] bool ReadString(std::string_view& out) {
    const uint64_t start = position_;
    uint64_t length = 0;
    std::span<const std::byte> text;
    if (!Read(length) || !Take(length, text)) {
      position_ = start;
      return false;
    }
    out = {reinterpret_cast<const char*>(text.data()), text.size()};
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

}  // namespace lockstep
