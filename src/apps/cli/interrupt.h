// Ctrl-C as a flag: while an Interrupt lives, SIGINT sets it instead of ending the program. One at
// a time.
#pragma once

#include <atomic>
#include <csignal>

namespace lockstep {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>* flag() const;
  // Readable, for poll(), from Ctrl-C until Clear(). It sees also the signal that comes between a
  // look at the flag and the wait, and the one that another thread handles.
  int descriptor() const;
  void Clear();

 private:
  struct sigaction previous_;
};

}  // namespace lockstep
