#include "apps/serving/stream.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/bounded_sink.h"

namespace lockstep {
namespace {

constexpr int32_t kWaitingEvents = 64;
// How soon a stop asked for from a signal handler, which cannot notify, is seen.
constexpr std::chrono::milliseconds kStopPoll{50};

struct Readable {
  std::mutex mutex;
  std::condition_variable changed;
  bool value = false;
};

}  // namespace

Result<GenerationEnd> Stream(Engine& engine, GenerationRequest request,
                             const std::atomic<bool>* stop,
                             const std::function<void(const GenerationEvent&)>& show) {
  auto readable = std::make_shared<Readable>();
  auto sink = std::make_shared<BoundedSink>(
      kWaitingEvents,
      [readable] {
        const std::lock_guard lock(readable->mutex);
        readable->value = true;
        readable->changed.notify_one();
      },
      [&engine] { engine.Wake(); });
  request.sink = sink;
  LOCKSTEP_ASSIGN_OR_RETURN(const RequestId id, engine.Submit(std::move(request)));
  bool cancelled = false;
  while (true) {
    {
      std::unique_lock lock(readable->mutex);
      readable->changed.wait_for(lock, kStopPoll, [&] { return readable->value; });
      readable->value = false;
    }
    if (stop != nullptr && *stop && !cancelled) {
      cancelled = true;
      engine.Cancel(id);
    }
    while (std::optional<GenerationEvent> event = sink->Pop()) {
      show(*event);
      if (event->end) return *event->end;
    }
  }
}

}  // namespace lockstep
