#include "engine/engine_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/log.h"

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
    LogWarning("request {}: its sink threw, cancelled: {}", id, error.what());
  } catch (...) {
    LogWarning("request {}: its sink threw, cancelled", id);
  }
  return EventSink::Answer::kClosed;
}

}  // namespace

void EngineCore::Submit(RequestId id, GenerationRequest request, int32_t max_tokens,
                        TimePoint submitted) {
  arrivals_.push_back(std::make_unique<Sequence>(id, std::move(request), max_tokens, tokenizer_,
                                                 options_.eos_ids, submitted));
}

void EngineCore::Cancel(RequestId id) { cancels_.push_back(id); }

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
  scheduler_.Plan(&plan_);
  const TimePoint planned = now_();
  stats_.seconds_plan += Seconds(planned - begin);

  TimePoint computed = planned;
  if (!plan_.rows.empty()) {
    const Status status = Compute();
    computed = now_();
    stats_.seconds_compute += Seconds(computed - planned);
    ++stats_.steps;
    if (status.ok()) {
      failed_attempts_ = 0;
      Commit(computed);
    } else if (++failed_attempts_ < kMaxStepAttempts) {
      LogWarning("a step failed and is computed again: {}", status.ToString());
    } else {
      Die(status.WithContext("the step failed repeatedly"));
    }
  }
  // Before the sinks hear of it: whoever has seen an answer's end finds it counted and its cache
  // given back.
  Publish();
  Deliver();
  Publish();
  const TimePoint end = now_();
  stats_.seconds_emit += Seconds(end - computed);
  const bool more = !plan_.rows.empty() || !arrivals_.empty() || !cancels_.empty();
  work_left_since_ = more && !idle() ? end : TimePoint();
  return more;
}

void EngineCore::TakeArrivals() {
  // Moved out first: a sink may submit while this runs.
  for (auto& sequence : std::exchange(arrivals_, {})) {
    ++stats_.submitted;
    sequences_.emplace(sequence->id(), sequence.get());
    scheduler_.Add(std::move(sequence));
  }
}

void EngineCore::TakeCancels() {
  for (const RequestId id : std::exchange(cancels_, {})) {
    const auto found = sequences_.find(id);
    if (found != sequences_.end()) {
      EndSequence(found->second, FinishReason::kCancelled, OkStatus());
    }
  }
  if (!cancel_all_.ok()) {
    EndAll(FinishReason::kCancelled, std::exchange(cancel_all_, OkStatus()));
  }
}

void EngineCore::ExpireDeadlines(TimePoint now) {
  std::vector<Sequence*> late;
  for (const auto& [id, sequence] : sequences_) {
    const auto& deadline = sequence->request().deadline;
    if (deadline && *deadline <= now) late.push_back(sequence);
  }
  for (Sequence* sequence : late) {
    EndSequence(sequence, FinishReason::kCancelled,
                Status(StatusCode::kDeadlineExceeded, "the request's deadline has passed"));
  }
}

void EngineCore::ResumeReadySinks() {
  for (const auto& sequence : scheduler_.running()) {
    if (sequence->paused() && sequence->sink().ready()) sequence->set_paused(false);
  }
}

void EngineCore::AdmitWaiting(TimePoint now) {
  started_.clear();
  scheduler_.Admit(&started_);
  for (const Sequence* sequence : started_) {
    stats_.queue_wait.Add(Seconds(now - sequence->submitted()));
  }
}

Status EngineCore::Compute() {
  input_.rows.clear();
  for (const PlannedRow& planned : plan_.rows) {
    const Sequence& sequence = *planned.sequence;
    StepRow& row = input_.rows.emplace_back();
    row.sequence = sequence.tokens();
    row.begin = planned.begin;
    row.count = planned.count;
    row.prompt_tokens = sequence.prompt_tokens();
    row.block_tables = kv_->BlockTables(sequence.slot());
    if (planned.sample) {
      row.sampling = &sequence.request().sampling;
      row.banned = sequence.banned();
    }
    if (sequence.state() == SequenceState::kComputingPrompt) {
      row.prompt_logprobs = sequence.request().prompt_logprobs;
    }
  }
  try {
    LOCKSTEP_RETURN_IF_ERROR(executor_->Step(input_, &output_));
  } catch (const std::exception& error) {
    return Internal(fmt::format("the executor threw: {}", error.what()));
  } catch (...) {
    return Internal("the executor threw");
  }
  LOCKSTEP_CHECK(output_.rows.size() == plan_.rows.size());
  return OkStatus();
}

void EngineCore::Commit(TimePoint now) {
  for (size_t i = 0; i < plan_.rows.size(); ++i) {
    const PlannedRow& planned = plan_.rows[i];
    Sequence* const sequence = planned.sequence;
    RowOutput& output = output_.rows[i];
    if (!output.status.ok()) {
      LogWarning("request {} failed: {}", sequence->id(), output.status.ToString());
      EndSequence(sequence, FinishReason::kError, output.status);
      continue;
    }
    const bool in_prompt = sequence->state() == SequenceState::kComputingPrompt;
    if (in_prompt) stats_.prompt_tokens += static_cast<uint64_t>(planned.count);
    GenerationEvent event;
    if (!sequence->Advance(planned.count, &output, &event)) continue;
    if (planned.sample) {
      ++stats_.generated_tokens;
      if (in_prompt) {
        stats_.time_to_first_token.Add(Seconds(now - sequence->submitted()));
      } else {
        stats_.inter_token.Add(Seconds(now - sequence->last_token()));
      }
      sequence->set_last_token(now);
    }
    outgoing_.push_back({sequence, std::move(event)});
    if (!sequence->live()) {
      const FinishReason reason = outgoing_.back().event.end->reason;
      ++(reason == FinishReason::kStop ? stats_.finished_stop : stats_.finished_length);
      Leave(sequence, now);
    }
  }
}

void EngineCore::Leave(Sequence* sequence, TimePoint now) {
  stats_.end_to_end.Add(Seconds(now - sequence->submitted()));
  sequences_.erase(sequence->id());
  ended_.push_back(scheduler_.Remove(sequence));
}

void EngineCore::EndSequence(Sequence* sequence, FinishReason reason, Status status) {
  GenerationEvent event;
  sequence->End(reason, std::move(status), &event);
  outgoing_.push_back({sequence, std::move(event)});
  ++(reason == FinishReason::kError ? stats_.finished_error : stats_.finished_cancelled);
  Leave(sequence, now_());
}

void EngineCore::EndAll(FinishReason reason, const Status& status) {
  std::vector<Sequence*> all;
  for (const auto& [id, sequence] : sequences_) all.push_back(sequence);
  // In the order of arrival, not of the hash.
  std::sort(all.begin(), all.end(), [](auto* a, auto* b) { return a->id() < b->id(); });
  for (Sequence* sequence : all) EndSequence(sequence, reason, status);
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
      sequence->End(FinishReason::kCancelled, OkStatus(), &unheard);
      ++stats_.finished_cancelled;
      Leave(sequence, now_());
    }
  }
  outgoing_.clear();
  ended_.clear();
}

void EngineCore::Die(Status why) {
  LogError("the engine is dead: {}", why.ToString());
  fatal_ = std::move(why);
  healthy_.store(false, std::memory_order_release);
  TakeArrivals();
  EndAll(FinishReason::kError, fatal_);
  Publish();
  Deliver();
  if (options_.on_fatal) options_.on_fatal(fatal_);
}

}  // namespace lockstep
