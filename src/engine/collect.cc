#include "engine/collect.h"

#include <future>
#include <memory>
#include <utility>

#include "engine/bounded_sink.h"

namespace lockstep {
namespace {

// Bounded by the answer's own length.
class CollectingSink : public EventSink {
 public:
  Answer Offer(GenerationEvent event) override {
    MergeEvent(std::move(event), &merged_);
    if (merged_.end) whole_.set_value(std::move(merged_));
    return Answer::kReady;
  }
  bool ready() const override { return true; }

  GenerationEvent Wait() { return whole_.get_future().get(); }

 private:
  GenerationEvent merged_;  // the engine's thread alone
  std::promise<GenerationEvent> whole_;
};

}  // namespace

Result<Answer> Collect(Engine& engine, GenerationRequest request) {
  const auto sink = std::make_shared<CollectingSink>();
  request.sink = sink;
  LOCKSTEP_RETURN_IF_ERROR(engine.Submit(std::move(request)).status());
  GenerationEvent whole = sink->Wait();
  return Answer{std::move(whole.text), std::move(whole.tokens), std::move(whole.prompt),
                *std::move(whole.end)};
}

}  // namespace lockstep
