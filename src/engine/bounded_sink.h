// The sink of a streaming client: events wait here, up to a capacity, until the consumer takes
// them. When the consumer is behind, what waits is one merged event (texts and tokens appended in
// order), so that a slow client costs one write, not many.
//
// A full sink pauses its sequence; it goes on once the consumer has drained the sink. Without
// memory for an event the consumer gets an end that says so, and the sink is closed.
//
// Thread-safe: Offer on the engine's thread, Pop and Close on the consumer's. The callbacks are
// called without a lock held and must not block; on_readable may still be running, once, when Close
// returns, so it has to own what it touches.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "engine/request.h"

namespace lockstep {

class BoundedSink : public EventSink {
 public:
  // `capacity` events (>= 1) may wait; the one that fills it is taken all the same. `on_readable`
  // is called on the engine's thread whenever an event arrives where none waited. `wake` is called
  // on the consumer's thread when a full sink was drained or closed: Engine::Wake.
  BoundedSink(int32_t capacity, std::function<void()> on_readable, std::function<void()> wake);

  // Everything that waits, as one event; none when nothing does.
  std::optional<GenerationEvent> Pop();

  // The consumer is gone: drops what waits, and the next Offer answers kClosed.
  void Close();

  Answer Offer(GenerationEvent event) override;
  bool ready() const override;

 private:
  void Tell();

  const int32_t capacity_;
  const std::function<void()> on_readable_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;
  GenerationEvent merged_;  // of `events_` events
  int32_t events_ = 0;
  bool full_ = false;  // said so, and not drained since
  bool closed_ = false;
  bool unheard_ = false;  // on_readable_ had no memory: told with the next event
  const Status out_of_memory_ = OutOfMemory();
};

// Appends `next` to `event`, which must not have ended.
void MergeEvent(GenerationEvent next, GenerationEvent* event);

}  // namespace lockstep
