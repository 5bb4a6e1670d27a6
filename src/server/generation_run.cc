#include "server/generation_run.h"

#include <utility>

namespace lockstep {

Result<std::unique_ptr<GenerationRun>> GenerationRun::Start(GenerationJob job, int32_t sink_events,
                                                            const std::function<void()>& readable) {
  std::unique_ptr<GenerationRun> run(new GenerationRun(std::move(job)));
  Engine* engine = run->job_.model->engine;
  for (GenerationRequest& request : run->job_.requests) {
    auto sink = std::make_shared<BoundedSink>(sink_events, readable, [engine] { engine->Wake(); });
    request.sink = sink;
    run->sinks_.push_back(std::move(sink));
    // On an error the run is destroyed, which cancels those that were taken.
    LOCKSTEP_ASSIGN_OR_RETURN(const RequestId id, engine->Submit(std::move(request)));
    run->ids_.push_back(id);
  }
  run->job_.requests.clear();
  run->has_ended_.assign(run->sinks_.size(), false);
  return run;
}

GenerationRun::~GenerationRun() {
  if (!done() || ids_.size() < sinks_.size()) Cancel();
}

Status GenerationRun::Drain(std::string* out) {
  for (size_t i = 0; i < sinks_.size(); ++i) {
    std::optional<GenerationEvent> event = sinks_[i]->Pop();
    if (!event) continue;
    if (event->end) {
      has_ended_[i] = true;
      ++ended_;
    }
    const Status status = job_.writer->Take(i, std::move(*event), out);
    if (!status.ok()) {
      Cancel();
      return status;
    }
  }
  return OkStatus();
}

void GenerationRun::Cancel() {
  if (std::exchange(cancelled_, true)) return;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (i < has_ended_.size() && has_ended_[i]) continue;
    job_.model->engine->Cancel(ids_[i]);
  }
  for (const auto& sink : sinks_) sink->Close();
}

}  // namespace lockstep
