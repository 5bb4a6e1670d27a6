// Lines from a descriptor, until an interrupt. Not thread-safe.
#pragma once

#include <string>

namespace lockstep {

enum class LineInput { kLine, kInterrupted, kEnd };

class LineReader {
 public:
  // Borrows both. `interrupt` is readable while one is pending; it is looked at before the input.
  LineReader(int input, int interrupt) : input_(input), interrupt_(interrupt) {}

  // Waits for a line, without its '\n' and of any length; the last one may lack the '\n'.
  // kInterrupted: `line` is untouched. kEnd: the end of the input, or it cannot be read.
  LineInput Read(std::string* line);

 private:
  const int input_;
  const int interrupt_;
  std::string read_;  // and not yet given out
  bool ended_ = false;
};

}  // namespace lockstep
