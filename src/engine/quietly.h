// Writing a log line is not worth a request: where there is no memory for it, there is none.
#pragma once

#include <exception>

namespace lockstep {

template <typename Log>
void Quietly(Log log) {
  try {
    log();
  } catch (const std::exception&) {
    // Nothing that could be said about it would need less memory.
  }
}

}  // namespace lockstep
