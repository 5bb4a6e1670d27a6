#include "apps/cli/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep {

LineInput LineReader::Read(std::string* line) {
  size_t searched = 0;
  while (true) {
    pollfd waits[] = {{interrupt_, POLLIN, 0}, {input_, POLLIN, 0}};
    const size_t end = read_.find('\n', searched);
    const bool here = ended_ || end != std::string::npos;
    if (poll(waits, here ? 1 : 2, here ? 0 : -1) < 0 && errno != EINTR) return LineInput::kEnd;
    if (waits[0].revents != 0) return LineInput::kInterrupted;
    if (end != std::string::npos) {
      *line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return LineInput::kLine;
    }
    if (ended_) {
      if (read_.empty()) return LineInput::kEnd;
      line->swap(read_);
      read_.clear();
      return LineInput::kLine;
    }
    if (waits[1].revents == 0) continue;
    searched = read_.size();
    char chunk[4096];
    const ssize_t count = read(input_, chunk, sizeof(chunk));
    if (count > 0) {
      read_.append(chunk, static_cast<size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      // On a terminal Ctrl-D is an end that more may follow; like a file's, it is the end here.
      ended_ = true;
    }
  }
}

}  // namespace lockstep
