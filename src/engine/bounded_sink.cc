#include "engine/bounded_sink.h"

#include <iterator>
#include <new>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

template <typename T>
void Append(std::vector<T> from, std::vector<T>* to) {
  if (to->empty()) {
    *to = std::move(from);
  } else {
    to->insert(to->end(), std::make_move_iterator(from.begin()),
               std::make_move_iterator(from.end()));
  }
}

}  // namespace

void MergeEvent(GenerationEvent next, GenerationEvent* event) {
  LOCKSTEP_CHECK(!event->end);
  event->text += next.text;
  Append(std::move(next.tokens), &event->tokens);
  Append(std::move(next.prompt), &event->prompt);
  event->end = std::move(next.end);
}

BoundedSink::BoundedSink(int32_t capacity, std::function<void()> on_readable,
                         std::function<void()> wake)
    : capacity_(capacity), on_readable_(std::move(on_readable)), wake_(std::move(wake)) {
  LOCKSTEP_CHECK(capacity >= 1);
}

EventSink::Answer BoundedSink::Offer(GenerationEvent event) {
  bool first = false;
  Answer answer = Answer::kReady;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return Answer::kClosed;
    first = events_ == 0 || unheard_;
    unheard_ = false;
    try {
      MergeEvent(std::move(event), &merged_);
    } catch (const std::bad_alloc&) {
      // An answer with a hole in it would be wrong: the consumer is told that it failed.
      merged_ = {};
      merged_.end.emplace();
      merged_.end->reason = FinishReason::kError;
      merged_.end->status = out_of_memory_;
      closed_ = true;
      answer = Answer::kClosed;
    }
    if (++events_ >= capacity_ && !closed_) {
      full_ = true;
      answer = Answer::kFull;
    }
  }
  if (first) Tell();
  return answer;
}

void BoundedSink::Tell() {
  try {
    on_readable_();
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    unheard_ = true;
  }
}

std::optional<GenerationEvent> BoundedSink::Pop() {
  std::optional<GenerationEvent> event;
  bool drained = false;
  {
    const std::lock_guard lock(mutex_);
    if (events_ == 0) return event;
    event = std::exchange(merged_, {});
    events_ = 0;
    drained = std::exchange(full_, false);
  }
  if (drained) wake_();
  return event;
}

void BoundedSink::Close() {
  bool drained = false;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    merged_ = {};
    events_ = 0;
    drained = std::exchange(full_, false);
  }
  if (drained) wake_();
}

bool BoundedSink::ready() const {
  const std::lock_guard lock(mutex_);
  return !full_;
}

}  // namespace lockstep
