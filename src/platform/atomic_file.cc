#include "platform/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "platform/system_error.h"

namespace lockstep {
namespace {

// Makes the new name in it durable.
Status SyncFolderOf(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? std::string(".") : parent.string();
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return SystemError(folder, errno);
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  return result == 0 ? OkStatus() : SystemError(folder, error);
}

}  // namespace

AtomicFile::AtomicFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  unlink(temporary().c_str());
  close(fd_);
}

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  AtomicFile file(path, -1);
  const std::string temporary = file.temporary();
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return SystemError(temporary, errno);
  // The lock is the file's, not the name's: who held it before may have renamed the file since.
  struct stat opened;
  struct stat named;
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &opened) == 0 &&
                      stat(temporary.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
                      opened.st_dev == named.st_dev;
  if (!locked) {
    close(fd);
    return FailedPrecondition(path + ": another process writes it");
  }
  file.fd_ = fd;
  if (ftruncate(fd, 0) != 0) return SystemError(temporary, errno);
  return file;
}

Status AtomicFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(temporary(), errno);
    if (written == 0) return IoError(temporary() + ": nothing could be written");
    bytes = bytes.subspan(written);
    offset += written;
  }
  return OkStatus();
}

Status AtomicFile::Commit() {
  if (fsync(fd_) != 0) return SystemError(temporary(), errno);
  if (rename(temporary().c_str(), path_.c_str()) != 0) return SystemError(path_, errno);
  close(std::exchange(fd_, -1));
  return SyncFolderOf(path_);
}

}  // namespace lockstep
