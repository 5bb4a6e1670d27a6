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
  void Clear();

 private:
  struct sigaction previous_;
};

}  // namespace lockstep
