#include "platform/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <utility>

namespace lockstep {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kArenaBuffer = size_t{32} << 20;  // untouched pages of it cost nothing

}  // namespace

Result<Buffer> Buffer::Allocate(size_t bytes, const char* what) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return ResourceExhausted("no memory for " + std::string(what) + ": " + std::to_string(bytes) +
                             " bytes");
  }
  if (bytes >= kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_ = bytes;
  return buffer;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Result<std::byte*> Arena::TakeBytes(size_t bytes, const char* what) {
  const size_t rounded = (bytes + 63) / 64 * 64;
  if (buffers_.empty() || buffers_.back().size() - used_ < rounded) {
    LOCKSTEP_ASSIGN_OR_RETURN(Buffer buffer,
                              Buffer::Allocate(std::max(rounded, kArenaBuffer), what));
    buffers_.push_back(std::move(buffer));
    used_ = 0;
  }
  std::byte* part = buffers_.back().data() + used_;
  used_ += rounded;
  bytes_ += static_cast<int64_t>(rounded);
  return part;
}

}  // namespace lockstep
