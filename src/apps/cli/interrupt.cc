#include "apps/cli/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"

namespace lockstep {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);
int event = -1;

void OnInterrupt(int) {
  const int saved = errno;
  interrupted = true;
  eventfd_write(event, 1);
  errno = saved;
}

}  // namespace

Interrupt::Interrupt() {
  event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  LOCKSTEP_CHECK(event >= 0);
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &previous_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &previous_, nullptr);
  close(event);
}

const std::atomic<bool>* Interrupt::flag() const { return &interrupted; }
int Interrupt::descriptor() const { return event; }

void Interrupt::Clear() {
  interrupted = false;
  eventfd_t count;
  eventfd_read(event, &count);
}

}  // namespace lockstep
