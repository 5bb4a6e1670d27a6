#include "engine/mask_filler.h"

#include <algorithm>
#include <system_error>

namespace lockstep {
namespace {

// A mask takes tens of microseconds, a step milliseconds: few threads do, and compute threads keep
// their cores.
constexpr unsigned kMaxWorkers = 4;

}  // namespace

MaskFiller::MaskFiller(int32_t rows) { matchers_.reserve(static_cast<size_t>(rows)); }

MaskFiller::~MaskFiller() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  more_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void MaskFiller::Add(TokenMatcher* matcher) {
  if (workers_.empty()) Start();
  {
    const std::lock_guard lock(mutex_);
    matchers_.push_back(matcher);
  }
  more_.notify_one();
}

void MaskFiller::Wait() {
  std::unique_lock lock(mutex_);
  while (begun_ < matchers_.size()) FillNext(&lock);
  filled_.wait(lock, [&] { return done_ == matchers_.size(); });
  matchers_.clear();
  begun_ = done_ = 0;
}

void MaskFiller::Start() {
  const unsigned count = std::clamp(std::thread::hardware_concurrency() / 4, 1u, kMaxWorkers);
  try {
    for (unsigned i = 0; i < count; ++i) workers_.emplace_back([this] { WorkerMain(); });
  } catch (const std::system_error&) {
    // Wait does what they would have done.
  }
}

void MaskFiller::WorkerMain() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [&] { return stop_ || begun_ < matchers_.size(); });
    if (stop_) return;
    FillNext(&lock);
  }
}

void MaskFiller::FillNext(std::unique_lock<std::mutex>* lock) {
  TokenMatcher* const matcher = matchers_[begun_++];
  lock->unlock();
  matcher->FillMask();
  lock->lock();
  if (++done_ == matchers_.size()) filled_.notify_one();
}

}  // namespace lockstep
