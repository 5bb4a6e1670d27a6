// A step of EngineCore: computing the plan, finding the rows that make it fail, and taking over the
// results.
#include <fmt/format.h>

#include <exception>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/engine_core.h"
#include "engine/quietly.h"

namespace lockstep {
namespace {

// A span that nobody asked for: shows whether the executor computes at all.
constexpr TokenId kProbe[] = {0};

double Seconds(EngineCore::TimePoint::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

Status WithContext(const Status& status, const char* context) {
  try {
    return status.WithContext(context);
  } catch (const std::bad_alloc&) {
    return status;
  }
}

}  // namespace

Status EngineCore::RunPlan() {
  const Status status = TryRows(plan_.rows, kMaxStepAttempts);
  if (status.ok()) return status;
  worked_ = false;
  return Bisect(plan_.rows, status);
}

Status EngineCore::TryRows(std::span<const PlannedRow> rows, int32_t attempts) {
  Status status;
  for (int32_t attempt = 0; attempt < attempts; ++attempt) {
    status = Compute(rows);
    if (status.ok()) {
      Commit(rows, now_());
      return status;
    }
    Quietly([&] { LogWarning("a step of {} rows failed: {}", rows.size(), status.ToString()); });
  }
  return status;
}

// REQUIRES: the rows have failed together. Nothing of theirs has advanced, so that computing some
// of them again gives the same bytes.
Status EngineCore::Bisect(std::span<const PlannedRow> rows, const Status& why) {
  if (rows.size() == 1) return Blame(rows.front().sequence, why);
  const size_t half = rows.size() / 2;
  for (const auto part : {rows.first(half), rows.subspan(half)}) {
    // Only who is about to be blamed is given the benefit of the doubt.
    const Status status = TryRows(part, part.size() == 1 ? kMaxStepAttempts : 1);
    if (status.ok()) {
      worked_ = true;
    } else {
      LOCKSTEP_RETURN_IF_ERROR(Bisect(part, status));
    }
  }
  return OkStatus();
}

// Ends a row that fails alone, unless it is the executor that fails.
Status EngineCore::Blame(Sequence* sequence, const Status& why) {
  EndSequence(sequence, FinishReason::kError, WithContext(why, "its step failed repeatedly"));
  if (worked_) return OkStatus();
  Status status;
  for (int32_t attempt = 0; attempt < kMaxStepAttempts; ++attempt) {
    status = Probe();
    if (status.ok()) {
      worked_ = true;
      return status;
    }
  }
  return WithContext(why, "no step can be computed");
}

// The blamed sequence has just given its blocks back, so there is one for the probe.
Status EngineCore::Probe() {
  std::optional<CacheSlot> slot;
  try {
    slot = kv_->Admit(1);
  } catch (const std::bad_alloc&) {
    return out_of_memory_;
  }
  LOCKSTEP_CHECK(slot);
  kv_->Reserve(*slot, 1);
  input_.rows.clear();
  StepRow& row = input_.rows.emplace_back();
  row.sequence = kProbe;
  row.count = 1;
  row.prompt_tokens = 1;
  row.block_tables = kv_->BlockTables(*slot);
  Status status = StepExecutor();
  kv_->Release(*slot);
  return status;
}

Status EngineCore::Compute(std::span<const PlannedRow> rows) {
  input_.rows.clear();
  for (const PlannedRow& planned : rows) {
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
      row.mask = sequence.mask();
    }
    if (sequence.state() == SequenceState::kComputingPrompt) {
      row.prompt_logprobs = sequence.request().prompt_logprobs;
    }
  }
  const TimePoint begin = options_.tracer != nullptr ? now_() : TimePoint();
  Status status = StepExecutor();
  if (options_.tracer != nullptr) TraceRows(rows, begin, now_());
  return status;
}

Status EngineCore::StepExecutor() {
  ++stats_.steps;
  const TimePoint begin = now_();
  Status status;
  try {
    status = executor_->Step(input_, &output_);
  } catch (const std::bad_alloc&) {
    status = out_of_memory_;
  } catch (const std::exception& error) {
    status = Internal(fmt::format("the executor threw: {}", error.what()));
  } catch (...) {
    status = Internal("the executor threw");
  }
  stats_.seconds_compute += Seconds(now_() - begin);
  LOCKSTEP_CHECK(!status.ok() || output_.rows.size() == input_.rows.size());
  return status;
}

void EngineCore::Commit(std::span<const PlannedRow> rows, TimePoint now) {
  for (size_t i = 0; i < rows.size(); ++i) {
    Sequence* const sequence = rows[i].sequence;
    RowOutput& output = output_.rows[i];
    if (output.status.ok() && rows[i].sample) {
      output.status = sequence->FollowGrammar(output.token);
    }
    if (!output.status.ok()) {
      EndSequence(sequence, FinishReason::kError, output.status);
      continue;
    }
    try {
      CommitRow(rows[i], &output, now);
    } catch (const std::bad_alloc&) {
      EndSequence(sequence, FinishReason::kError, out_of_memory_);
      continue;
    }
    if (rows[i].sample && sequence->live() && sequence->has_grammar()) {
      masks_.Add(sequence->matcher());
    }
  }
}

// Throws std::bad_alloc before anybody else knows of the result.
void EngineCore::CommitRow(const PlannedRow& planned, RowOutput* output, TimePoint now) {
  Sequence* const sequence = planned.sequence;
  const bool in_prompt = sequence->state() == SequenceState::kComputingPrompt;
  GenerationEvent event;
  const bool tells = sequence->Advance(planned.count, output, &event);
  kv_->Commit(sequence->slot(), std::span(sequence->tokens()).first(sequence->computed()));
  if (in_prompt) stats_.prompt_tokens += static_cast<uint64_t>(planned.count);
  if (!tells) return;
  if (planned.sample) {
    ++stats_.generated_tokens;
    if (in_prompt) {
      stats_.time_to_first_token.Add(Seconds(now - sequence->submitted()));
      TraceFirstToken(*sequence, now);
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

}  // namespace lockstep
