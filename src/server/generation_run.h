// GenerationRun: the requests of one job in the engine, and the way of their events through the
// job's writer. Knows no sockets. Start on any thread; afterwards one thread at a time, Cancel
// included. Destroying it cancels what still runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/endpoint.h"
#include "base/status.h"
#include "engine/bounded_sink.h"

namespace lockstep {

class GenerationRun {
 public:
  // Submits all of the job's requests or none. `readable` is called on the engine's thread when
  // there is something for Drain; it must own what it touches and not block. Errors: the engine's.
  static Result<std::unique_ptr<GenerationRun>> Start(GenerationJob job, int32_t sink_events,
                                                      const std::function<void()>& readable);
  ~GenerationRun();

  GenerationRun(const GenerationRun&) = delete;
  GenerationRun& operator=(const GenerationRun&) = delete;

  bool stream() const { return job_.stream; }
  // The first of its requests.
  RequestId id() const { return ids_.front(); }
  AnswerWriter& writer() { return *job_.writer; }

  // Feeds what waits to the writer; a stream's bytes are appended to `out`. An error means that a
  // request failed: the others were cancelled.
  Status Drain(std::string* out);

  bool done() const { return ended_ == sinks_.size(); }

  // The consumer is gone. Idempotent.
  void Cancel();

 private:
  explicit GenerationRun(GenerationJob job) : job_(std::move(job)) {}

  GenerationJob job_;
  std::vector<std::shared_ptr<BoundedSink>> sinks_;
  std::vector<RequestId> ids_;
  std::vector<bool> has_ended_;
  size_t ended_ = 0;
  bool cancelled_ = false;
};

}  // namespace lockstep
