#include "engine/engine_core.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/quietly.h"

namespace lockstep {
namespace {

double Seconds(EngineCore::TimePoint::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// The reply of a sink; one that throws is as good as gone.
EventSink::Answer OfferTo(EventSink& sink, RequestId id, GenerationEvent event) {
  try {
    return sink.Offer(std::move(event));
  } catch (const std::exception& error) {
    Quietly([&] { LogWarning("request {}: its sink threw, cancelled: {}", id, error.what()); });
  } catch (...) {
    Quietly([&] { LogWarning("request {}: its sink threw, cancelled", id); });
  }
  return EventSink::Answer::kClosed;
}

}  // namespace

std::unique_ptr<Sequence> EngineCore::MakeSequence(GenerationRequest request, int32_t max_tokens,
                                                   TimePoint submitted) const {
  return std::make_unique<Sequence>(RequestId{0}, std::move(request), max_tokens, tokenizer_,
                                    options_.eos_ids, submitted);
}

void EngineCore::Submit(std::unique_ptr<Sequence> sequence) {
  try {
    arrivals_.push_back(nullptr);
  } catch (const std::bad_alloc&) {
    ++stats_.submitted;
    Refuse(sequence.get());
    return;
  }
  arrivals_.back() = std::move(sequence);
}

void EngineCore::Cancel(RequestId id) {
  try {
    cancels_.push_back(id);
  } catch (const std::bad_alloc&) {
    // Whoever cancels has closed its sink: the row ends when it next offers something.
  }
}

void EngineCore::CancelAll(Status why) { cancel_all_ = std::move(why); }

bool EngineCore::RunOneStep() {
  const TimePoint begin = now_();
  if (work_left_since_ != TimePoint()) stats_.seconds_gap += Seconds(begin - work_left_since_);
  TakeArrivals();
  if (!healthy()) EndAll(FinishReason::kError, fatal_);
  TakeCancels();
  ExpireDeadlines(begin);
  ResumeReadySinks();
  AdmitWaiting(begin);
  bool more = TakeInPrefixes();
  scheduler_.Plan(&plan_, pace_.PromptTokens());
  CountAdopted(plan_.adopted);
  const TimePoint planned = now_();
  stats_.seconds_plan += Seconds(planned - begin);

  const double computed_before = stats_.seconds_compute;
  Status dead;
  TimePoint computed = planned;
  if (!plan_.rows.empty()) {
    dead = RunPlan();
    computed = now_();
    pace_.Observe(plan_.decoding, plan_.tokens - plan_.decoding,
                  stats_.seconds_compute - computed_before);
  }
  // Before the sinks hear of it: whoever has seen an answer's end finds it counted and its cache
  // given back.
  Publish();
  Deliver();
  if (!dead.ok()) Die(std::move(dead));
  if (transfer_ != nullptr) more |= transfer_->HandOver();
  Publish();
  const TimePoint end = now_();
  stats_.seconds_emit +=
      std::max(0.0, Seconds(end - planned) - (stats_.seconds_compute - computed_before));
  TraceStep(begin, planned, computed, end);
  more |= !plan_.rows.empty() || !arrivals_.empty() || !cancels_.empty();
  work_left_since_ = more && !idle() ? end : TimePoint();
  return more;
}

bool EngineCore::TakeInPrefixes() {
  if (transfer_ == nullptr) return false;
  int32_t adopted = 0;
  const bool more = transfer_->TakeIn(&adopted);
  CountAdopted(adopted);
  return more;
}

void EngineCore::CountAdopted(int32_t tokens) {
  stats_.cached_tokens += static_cast<uint64_t>(tokens);
  stats_.prompt_tokens += static_cast<uint64_t>(tokens);
}

void EngineCore::TakeArrivals() {
  // Moved out first: a sink may submit while this runs.
  entering_.swap(arrivals_);
  for (std::unique_ptr<Sequence>& arrival : entering_) {
    ++stats_.submitted;
    if (!Enter(&arrival)) Refuse(arrival.get());
  }
  entering_.clear();
}

// Takes the arrival in; false: there is no memory for it.
bool EngineCore::Enter(std::unique_ptr<Sequence>* arrival) {
  const RequestId id = (*arrival)->id();
  try {
    const size_t live = sequences_.size() + 1;
    if (everyone_.capacity() < live) {
      const size_t room = std::max(live, 2 * everyone_.capacity());
      ended_.reserve(room);
      outgoing_.reserve(room);
      everyone_.reserve(room);
    }
    sequences_.emplace(id, arrival->get());
    scheduler_.Add(std::move(*arrival));
    return true;
  } catch (const std::bad_alloc&) {
    sequences_.erase(id);
    return false;
  }
}

void EngineCore::Refuse(Sequence* sequence) {
  Quietly([&] { LogWarning("request {} refused: out of memory", sequence->id()); });
  ++stats_.finished_error;
  GenerationEvent event;
  sequence->Abandon(FinishReason::kError, out_of_memory_, &event);
  OfferTo(sequence->sink(), sequence->id(), std::move(event));
}

void EngineCore::TakeCancels() {
  for (const RequestId id : cancels_) {
    const auto found = sequences_.find(id);
    if (found != sequences_.end()) {
      EndSequence(found->second, FinishReason::kCancelled, OkStatus());
    }
  }
  cancels_.clear();
  if (!cancel_all_.ok()) {
    EndAll(FinishReason::kCancelled, std::exchange(cancel_all_, OkStatus()));
  }
}

void EngineCore::ExpireDeadlines(TimePoint now) {
  for (auto next = sequences_.begin(); next != sequences_.end();) {
    Sequence* const sequence = (next++)->second;  // before its entry goes
    const auto& deadline = sequence->request().deadline;
    if (deadline && *deadline <= now) EndSequence(sequence, FinishReason::kCancelled, too_late_);
  }
}

void EngineCore::ResumeReadySinks() {
  for (const auto& sequence : scheduler_.running()) {
    if (sequence->paused() && sequence->sink().ready()) sequence->set_paused(false);
  }
}

void EngineCore::AdmitWaiting(TimePoint now) {
  started_.clear();
  while (true) {
    try {
      scheduler_.Admit(&started_);
      break;
    } catch (const std::bad_alloc&) {
      EndSequence(scheduler_.waiting().front().get(), FinishReason::kError, out_of_memory_);
    }
  }
  for (const Sequence* sequence : started_) {
    stats_.queue_wait.Add(Seconds(now - sequence->submitted()));
    TraceStart(*sequence, now);
    if (options_.prefix_cache && sequence->adoptable() > 0) {
      stats_.prefix_queries += static_cast<uint64_t>(sequence->prompt_tokens());
    }
  }
}

void EngineCore::Leave(Sequence* sequence, TimePoint now) {
  stats_.end_to_end.Add(Seconds(now - sequence->submitted()));
  TraceEnd(*sequence, now);
  if (transfer_ != nullptr) transfer_->Forget(sequence);
  sequences_.erase(sequence->id());
  ended_.push_back(scheduler_.Remove(sequence));
}

void EngineCore::EndSequence(Sequence* sequence, FinishReason reason, Status status) {
  if (reason == FinishReason::kError) {
    Quietly([&] { LogWarning("request {} failed: {}", sequence->id(), status.ToString()); });
  }
  GenerationEvent event;
  try {
    sequence->End(reason, status, &event);
  } catch (const std::bad_alloc&) {
    event = {};
    sequence->Abandon(reason, status, &event);
  }
  outgoing_.push_back({sequence, std::move(event)});
  ++(reason == FinishReason::kError ? stats_.finished_error : stats_.finished_cancelled);
  Leave(sequence, now_());
}

void EngineCore::EndAll(FinishReason reason, const Status& status) {
  everyone_.clear();
  for (const auto& [id, sequence] : sequences_) everyone_.push_back(sequence);
  // In the order of arrival, not of the hash.
  std::sort(everyone_.begin(), everyone_.end(), [](auto* a, auto* b) { return a->id() < b->id(); });
  for (Sequence* sequence : everyone_) EndSequence(sequence, reason, status);
}

void EngineCore::Deliver() {
  for (Outgoing& out : outgoing_) {
    Sequence* const sequence = out.sequence;
    const auto answer = OfferTo(sequence->sink(), sequence->id(), std::move(out.event));
    if (!sequence->live()) continue;
    sequence->set_paused(answer == EventSink::Answer::kFull);
    if (answer == EventSink::Answer::kClosed) {
      // Nobody is left to hear the end.
      GenerationEvent unheard;
      sequence->Abandon(FinishReason::kCancelled, OkStatus(), &unheard);
      ++stats_.finished_cancelled;
      Leave(sequence, now_());
    }
  }
  outgoing_.clear();
  const auto with_grammar = [](const auto& sequence) { return sequence->has_grammar(); };
  if (std::any_of(ended_.begin(), ended_.end(), with_grammar)) masks_.Wait();
  ended_.clear();
}

void EngineCore::Die(Status why) {
  Quietly([&] { LogError("the engine is dead: {}", why.ToString()); });
  fatal_ = std::move(why);
  healthy_.store(false, std::memory_order_release);
  TakeArrivals();
  EndAll(FinishReason::kError, fatal_);
  Publish();
  Deliver();
  if (options_.on_fatal) options_.on_fatal(fatal_);
}

}  // namespace lockstep
