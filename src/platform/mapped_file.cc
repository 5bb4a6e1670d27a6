#include "platform/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "platform/system_error.h"

namespace lockstep {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

int ToMadvise(MappedFile::Advice advice) {
  switch (advice) {
    case MappedFile::Advice::kNormal:
      return MADV_NORMAL;
    case MappedFile::Advice::kSequential:
      return MADV_SEQUENTIAL;
    case MappedFile::Advice::kRandom:
      return MADV_RANDOM;
    case MappedFile::Advice::kWillNeed:
      return MADV_WILLNEED;
    case MappedFile::Advice::kDontNeed:
      return MADV_DONTNEED;
  }
  return MADV_NORMAL;
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  // The system would stop at the zero and open another file than the one named.
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("a file path must not contain a zero byte");
  }
  // O_NONBLOCK: a named pipe must be refused below, not waited for here.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return SystemError(path, errno);
  struct stat info;
  if (fstat(file.get(), &info) != 0) return SystemError(path, errno);
  if (S_ISDIR(info.st_mode)) return InvalidArgument(path + ": is a directory, not a file");
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path + ": is not a regular file");
  if (info.st_size == 0) return DataLoss(path + ": the file is empty");
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > std::numeric_limits<size_t>::max()) {
    return ResourceExhausted(path + ": the file is larger than the address space");
  }
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return SystemError(path, errno);
  return MappedFile(path, {static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(std::string path, std::span<const std::byte> bytes)
    : path_(std::move(path)), bytes_(bytes) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Unmap();
    path_ = std::move(other.path_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

MappedFile::~MappedFile() { Unmap(); }

void MappedFile::Unmap() {
  if (bytes_.empty()) return;
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  bytes_ = {};
}

void MappedFile::Advise(Advice advice, uint64_t offset, uint64_t length) const {
  if (offset >= size() || length == 0) return;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = offset - offset % page;
  const uint64_t end = offset + std::min(length, size() - offset);
  // A hint that the kernel refuses costs speed at most, so its answer is of no use here.
  (void)madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, ToMadvise(advice));
}

}  // namespace lockstep
