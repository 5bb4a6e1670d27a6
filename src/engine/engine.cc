#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/engine_core.h"
#include "engine/quietly.h"
#include "engine/seed_source.h"

namespace lockstep {

// The inbox, guarded by mutex_, between the callers' threads and the loop's, which owns the core.
class Engine::Impl {
 public:
  using TimePoint = EngineCore::TimePoint;

  explicit Impl(std::unique_ptr<EngineCore> core) : core_(std::move(core)) {
    thread_ = std::thread([this] { Run(); });
    if (store() != nullptr) store()->SetWake([this] { Wake(); });
  }

  ~Impl() {
    LOCKSTEP_CHECK(!on_loop_thread());
    if (store() != nullptr) store()->SetWake(nullptr);
    {
      const std::lock_guard lock(mutex_);
      closing_ = stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  Result<RequestId> Submit(GenerationRequest request) {
    LOCKSTEP_CHECK(request.sink != nullptr);
    LOCKSTEP_ASSIGN_OR_RETURN(const int32_t max_tokens, CheckRequest(request, core_->limits()));
    request.sampling.seed = request.seed ? *request.seed : seeds_.Next();
    try {
      return Enqueue(std::move(request), max_tokens);
    } catch (const std::bad_alloc&) {
      return OutOfMemory();
    }
  }

  void Cancel(RequestId id) {
    {
      const std::lock_guard lock(mutex_);
      try {
        cancels_.push_back(id);
      } catch (const std::bad_alloc&) {
        // Whoever cancels closes its sink as well: the row ends when it next offers something.
      }
    }
    wake_.notify_one();
  }

  void Wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    wake_.notify_one();
  }

  void Drain(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    closing_ = true;
    drain_deadline_ = drain_deadline_ ? std::min(*drain_deadline_, deadline) : deadline;
    woken_ = true;
    wake_.notify_one();
    if (on_loop_thread()) return;
    drained_.wait(lock, [this] { return idle_; });
  }

  Status FlushPrefixes(TimePoint deadline, const std::atomic<bool>* gone) {
    // How often to look whether the one who asked has left.
    constexpr std::chrono::milliseconds kLook{100};
    if (store() == nullptr) {
      return FailedPrecondition("prefixes are not kept on disk: the server has no --prefix-dir");
    }
    const std::unique_lock alone(flush_mutex_, std::try_to_lock);
    if (!alone.owns_lock()) {
      return Status(StatusCode::kQueueFull, "the prefix cache is being flushed already");
    }
    std::unique_lock lock(mutex_);
    const uint64_t asked = ++flushes_asked_;
    woken_ = true;
    wake_.notify_one();
    while (handed_over_ < asked) {
      if (!core_->healthy()) return Unavailable("the engine is dead");
      if (gone != nullptr && gone->load()) return Status(StatusCode::kCancelled, "nobody waits");
      const TimePoint now = std::chrono::steady_clock::now();
      if (now >= deadline) {
        return Status(StatusCode::kDeadlineExceeded, "not all of the prefix cache is on disk yet");
      }
      handed_over_changed_.wait_until(lock, std::min(deadline, now + kLook));
    }
    lock.unlock();
    return store()->Flush(deadline, gone);
  }

  // Waiting as Submit counts it, so that who sees room in the queue finds it.
  EngineStats stats() {
    EngineStats stats = core_->stats();
    const std::lock_guard lock(mutex_);
    stats.waiting = WaitingLocked();
    return stats;
  }

  const EngineCore& core() const { return *core_; }

 private:
  // Whatever the request needs of memory is had here, on its caller's thread: the loop only takes
  // it over. Throws std::bad_alloc, and has then done nothing.
  Result<RequestId> Enqueue(GenerationRequest request, int32_t max_tokens) {
    {
      // Before the work of making it.
      const std::lock_guard lock(mutex_);
      LOCKSTEP_RETURN_IF_ERROR(MayEnterLocked());
    }
    std::unique_ptr<Sequence> sequence =
        core_->MakeSequence(std::move(request), max_tokens, std::chrono::steady_clock::now());
    RequestId id = 0;
    {
      const std::lock_guard lock(mutex_);
      LOCKSTEP_RETURN_IF_ERROR(MayEnterLocked());
      submits_.push_back(std::move(sequence));
      id = ++last_id_;
      submits_.back()->set_id(id);
      idle_ = false;
    }
    wake_.notify_one();
    return id;
  }

  Status MayEnterLocked() const {
    if (!core_->healthy()) return Unavailable("the engine is dead");
    if (closing_) return Unavailable("the engine is shutting down");
    if (WaitingLocked() < core_->options().max_queue) return OkStatus();
    return Status(StatusCode::kQueueFull,
                  fmt::format("{} requests are waiting already", core_->options().max_queue));
  }

  // Those in the inbox that find a free row do not wait.
  int32_t WaitingLocked() const {
    return waiting_ + std::max(0, static_cast<int32_t>(submits_.size()) - free_rows_);
  }

  PrefixStore* store() const {
    const EngineOptions& options = core_->options();
    return options.prefix_cache ? options.prefix_store.get() : nullptr;
  }

  bool on_loop_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

  void Run() {
    bool more = false;
    while (WaitAndTakeInbox(more)) {
      try {
        more = core_->RunOneStep();
      } catch (const std::exception& error) {
        Quietly([&] { LogError("the engine's loop threw: {}", error.what()); });
        core_->Die(loop_threw_);
        more = true;
      }
      const std::lock_guard lock(mutex_);
      waiting_ = core_->waiting();
      free_rows_ = waiting_ == 0 ? core_->options().max_rows - core_->running() : 0;
      idle_ = core_->idle() && submits_.empty();
      if (idle_) drained_.notify_all();
      SettleFlushesLocked();
    }
  }

  // Those that asked when the core had given out a number wait until it has seen to all up to it.
  void SettleFlushesLocked() {
    while (flushes_taken_ < flushes_asked_) {
      flushes_.emplace_back(++flushes_taken_, core_->last_prefix_number());
    }
    while (!flushes_.empty() && flushes_.front().second <= core_->prefixes_handed_over()) {
      handed_over_ = flushes_.front().first;
      flushes_.pop_front();
      handed_over_changed_.notify_all();
    }
  }

  // Parks until there is work; hands it to the core. False: stopped, and nothing is left.
  bool WaitAndTakeInbox(bool more) {
    std::unique_lock lock(mutex_);
    const auto signalled = [this] {
      return stop_ || woken_ || !submits_.empty() || !cancels_.empty();
    };
    std::optional<TimePoint> until = core_->NextDeadline();
    if (drain_deadline_ && !idle_)
      until = until ? std::min(*until, *drain_deadline_) : drain_deadline_;
    if (!more) {
      if (until) {
        wake_.wait_until(lock, *until, signalled);
      } else {
        wake_.wait(lock, signalled);
      }
    }
    if (stop_ && idle_) return false;
    woken_ = false;
    // Counted as waiting until the core says which of them run.
    waiting_ += std::max(0, static_cast<int32_t>(submits_.size()) - free_rows_);
    free_rows_ = std::max(0, free_rows_ - static_cast<int32_t>(submits_.size()));
    taken_submits_.swap(submits_);
    taken_cancels_.swap(cancels_);
    const bool all_over =
        stop_ || (drain_deadline_ && *drain_deadline_ <= std::chrono::steady_clock::now());
    lock.unlock();  // a sink that hears of a refusal may call back
    for (std::unique_ptr<Sequence>& sequence : taken_submits_) core_->Submit(std::move(sequence));
    taken_submits_.clear();
    for (const RequestId id : taken_cancels_) core_->Cancel(id);
    taken_cancels_.clear();
    if (all_over) core_->CancelAll(shutting_down_);
    return true;
  }

  const std::unique_ptr<EngineCore> core_;
  SeedSource seeds_;

  std::mutex mutex_;
  std::condition_variable wake_;     // the loop waits
  std::condition_variable drained_;  // Drain waits
  std::vector<std::unique_ptr<Sequence>> submits_;
  std::vector<RequestId> cancels_;
  RequestId last_id_ = 0;
  int32_t waiting_ = 0;  // in the core
  int32_t free_rows_ = core_->options().max_rows;
  bool woken_ = false;
  bool idle_ = true;
  bool closing_ = false;
  bool stop_ = false;
  std::optional<TimePoint> drain_deadline_;
  std::mutex flush_mutex_;                       // held by FlushPrefixes: one at a time
  std::condition_variable handed_over_changed_;  // it waits
  uint64_t flushes_asked_ = 0;
  uint64_t flushes_taken_ = 0;
  uint64_t handed_over_ = 0;                           // flushes
  std::deque<std::pair<uint64_t, uint64_t>> flushes_;  // taken, and the core's number for each

  // The loop's alone.
  std::vector<std::unique_ptr<Sequence>> taken_submits_;
  std::vector<RequestId> taken_cancels_;
  const Status loop_threw_ = Internal("an unexpected error in the engine's loop");
  const Status shutting_down_ = Unavailable("the engine is shutting down");

  std::thread thread_;  // last: it uses all of the above
};

Result<std::unique_ptr<Engine>> Engine::Create(std::unique_ptr<Executor> executor,
                                               std::shared_ptr<const Tokenizer> tokenizer,
                                               EngineOptions options) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto core, EngineCore::Create(std::move(executor), std::move(tokenizer), std::move(options)));
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(std::move(core))));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<RequestId> Engine::Submit(GenerationRequest request) {
  return impl_->Submit(std::move(request));
}
void Engine::Cancel(RequestId id) { impl_->Cancel(id); }
void Engine::Wake() { impl_->Wake(); }
void Engine::Drain(std::chrono::steady_clock::time_point deadline) { impl_->Drain(deadline); }
Status Engine::FlushPrefixes(std::chrono::steady_clock::time_point deadline,
                             const std::atomic<bool>* gone) {
  return impl_->FlushPrefixes(deadline, gone);
}
bool Engine::healthy() const { return impl_->core().healthy(); }
EngineStats Engine::stats() const { return impl_->stats(); }
const ExecutorInfo& Engine::info() const { return impl_->core().info(); }
const EngineOptions& Engine::options() const { return impl_->core().options(); }

}  // namespace lockstep
