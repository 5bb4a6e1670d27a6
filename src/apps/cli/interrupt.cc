#include "apps/cli/interrupt.h"

namespace lockstep {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnInterrupt(int) { interrupted = true; }

}  // namespace

Interrupt::Interrupt() {
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;  // without SA_RESTART: a read at the prompt returns
  sigaction(SIGINT, &action, &previous_);
}

Interrupt::~Interrupt() { sigaction(SIGINT, &previous_, nullptr); }

const std::atomic<bool>* Interrupt::flag() const { return &interrupted; }
void Interrupt::Clear() { interrupted = false; }

}  // namespace lockstep
