#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "cache/disk/disk_store.h"
#include "platform/atomic_file.h"
#include "platform/system_error.h"

namespace lockstep {
namespace {

constexpr const char* kLock = "/lock";

// A file can be made, written and renamed in the folder.
Status TryToWrite(const std::string& folder) {
  const std::string path = folder + "/try";
  LOCKSTEP_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  LOCKSTEP_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span("try", 3))));
  LOCKSTEP_RETURN_IF_ERROR(file.Commit());
  return unlink(path.c_str()) == 0 ? OkStatus() : SystemError(path, errno);
}

}  // namespace

Result<std::unique_ptr<PrefixFolder>> PrefixFolder::Open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return SystemError(path, error.value());
  const std::string lock = path + kLock;
  const int fd = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return SystemError(lock, errno);
  std::unique_ptr<PrefixFolder> folder(new PrefixFolder(path, fd));
  // Goes with the process, however it ends.
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return FailedPrecondition(path + ": another process keeps its prefixes there");
  }
  LOCKSTEP_RETURN_IF_ERROR(TryToWrite(path));
  return folder;
}

PrefixFolder::~PrefixFolder() { close(lock_); }

}  // namespace lockstep
