// What EngineCore tells a tracer: on the engine's lane each step with its parts, on a request's
// lane its wait, the steps that it took part in, its first token and the whole of it.
// docs/tracing.md names the spans.
#include "engine/engine_core.h"

namespace lockstep {

void EngineCore::TraceStep(TimePoint begin, TimePoint planned, TimePoint computed, TimePoint end) {
  if (options_.tracer == nullptr || plan_.rows.empty()) return;
  Tracer& tracer = *options_.tracer;
  tracer.Record({.name = "step",
                 .begin = begin,
                 .end = end,
                 .arguments = {{{"rows", static_cast<int64_t>(plan_.rows.size())},
                                {"tokens", plan_.tokens},
                                {"waiting", stats_.waiting},
                                {"kv_bytes", kv_->used_bytes()}}}});
  tracer.Record({.name = "plan",
                 .begin = begin,
                 .end = planned,
                 .arguments = {{{"cached_tokens", plan_.adopted}}}});
  tracer.Record({.name = "compute", .begin = planned, .end = computed});
  tracer.Record({.name = "emit", .begin = computed, .end = end});
}

void EngineCore::TraceRows(std::span<const PlannedRow> rows, TimePoint begin, TimePoint end) {
  for (const PlannedRow& row : rows) {
    const Sequence& sequence = *row.sequence;
    const bool prompt = sequence.state() == SequenceState::kComputingPrompt;
    options_.tracer->Record({.name = prompt ? "prompt" : "decode",
                             .lane = static_cast<int64_t>(sequence.id()),
                             .begin = begin,
                             .end = end,
                             .arguments = {{{"from", row.begin},
                                            {"tokens", row.count},
                                            {"rows", static_cast<int64_t>(rows.size())}}}});
  }
}

void EngineCore::TraceStart(const Sequence& sequence, TimePoint now) {
  if (options_.tracer == nullptr) return;
  options_.tracer->Record({.name = "queue",
                           .lane = static_cast<int64_t>(sequence.id()),
                           .begin = sequence.submitted(),
                           .end = now,
                           .arguments = {{{"prompt_tokens", sequence.prompt_tokens()}}}});
}

void EngineCore::TraceFirstToken(const Sequence& sequence, TimePoint now) {
  if (options_.tracer == nullptr) return;
  options_.tracer->Record({.name = "first token",
                           .lane = static_cast<int64_t>(sequence.id()),
                           .begin = now,
                           .end = now});
}

void EngineCore::TraceEnd(const Sequence& sequence, TimePoint now) {
  if (options_.tracer == nullptr) return;
  const auto tokens = static_cast<int64_t>(sequence.tokens().size());
  options_.tracer->Record({.name = "request",
                           .lane = static_cast<int64_t>(sequence.id()),
                           .begin = sequence.submitted(),
                           .end = now,
                           .arguments = {{{"prompt_tokens", sequence.prompt_tokens()},
                                          {"cached_tokens", sequence.adopted()},
                                          {"new_tokens", tokens - sequence.prompt_tokens()},
                                          {"state", static_cast<int64_t>(sequence.state())}}}});
}

}  // namespace lockstep
