#include "platform/system_error.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace lockstep {

Status SystemError(const std::string& path, int error) {
  std::string message = path + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return NotFound(std::move(message));
    case EACCES:
    case EPERM:
    case EROFS:
      return FailedPrecondition(std::move(message));
    case ENOMEM:
      return ResourceExhausted(std::move(message));
    default:
      return IoError(std::move(message));
  }
}

}  // namespace lockstep
