// Buffer: zeroed, page-aligned memory straight from the system, asked for in huge pages where the
// system has them. Pages cost nothing until first touched. Move-only owner; thread-compatible.
//
// Arena: hands out parts of buffers that live as long as it does; for what is sized once at load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace lockstep {

class Buffer {
 public:
  Buffer() = default;
  // kResourceExhausted when the system has no such room. `what` is for the message.
  static Result<Buffer> Allocate(size_t bytes, const char* what);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

class Arena {
 public:
  // Room for `count` values of T, zeroed and 64-byte aligned. T must be trivial.
  template <typename T>
  Result<T*> Take(size_t count, const char* what) {
    static_assert(std::is_trivially_destructible_v<T>);
    auto bytes = TakeBytes(count * sizeof(T), what);
    if (!bytes.ok()) return bytes.status();
    return reinterpret_cast<T*>(*bytes);
  }
  int64_t bytes() const { return bytes_; }

 private:
  Result<std::byte*> TakeBytes(size_t bytes, const char* what);

  std::vector<Buffer> buffers_;
  size_t used_ = 0;  // of the last buffer
  int64_t bytes_ = 0;
};

}  // namespace lockstep
