#include "apps/verify/serve_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>

namespace lockstep {
namespace {

constexpr int kAtOnce = 3;

template <typename T>
void AppendBits(T value, std::string* bytes) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes->append(raw, sizeof(T));
}

void AppendLogprobs(const PositionLogprobs& position, std::string* bytes) {
  AppendBits(position.token, bytes);
  AppendBits(position.logprob, bytes);
  for (const TokenLogprob& entry : position.top) {
    AppendBits(entry.id, bytes);
    AppendBits(entry.logprob, bytes);
  }
}

// An answer under way, and the promise that is kept at its end.
class Recording {
 public:
  void Add(const GenerationEvent& event) {
    text_ += event.text;
    for (const PositionLogprobs& position : event.prompt) AppendLogprobs(position, &bytes_);
    for (const TokenEvent& token : event.tokens) {
      answer_.tokens.push_back(token.id);
      AppendBits(token.id, &bytes_);
      bytes_ += token.bytes;
      AppendLogprobs(token.logprobs, &bytes_);
    }
    if (!event.end) return;
    if (!event.end->status.ok()) {
      whole_.set_value(event.end->status);
      return;
    }
    AppendBits(event.end->reason, &bytes_);
    AppendBits(event.end->usage.prompt_tokens, &bytes_);
    AppendBits(event.end->usage.completion_tokens, &bytes_);
    answer_.bytes = text_ + '\0' + bytes_ + event.end->stop;
    answer_.cached_tokens = event.end->usage.cached_tokens;
    whole_.set_value(std::move(answer_));
  }
  void Fail(Status status) { whole_.set_value(std::move(status)); }
  Result<ServedAnswer> Wait() { return whole_.get_future().get(); }

 private:
  std::string text_;
  std::string bytes_;
  ServedAnswer answer_;
  std::promise<Result<ServedAnswer>> whole_;
};

// Records; `on_event` runs before.
class RecordingSink : public EventSink {
 public:
  RecordingSink(std::shared_ptr<Recording> recording, std::function<void()> on_event)
      : recording_(std::move(recording)), on_event_(std::move(on_event)) {}

  Answer Offer(GenerationEvent event) override {
    on_event_();
    recording_->Add(event);
    return Answer::kReady;
  }
  bool ready() const override { return true; }

 private:
  std::shared_ptr<Recording> recording_;
  std::function<void()> on_event_;
};

class Feeder {
 public:
  Feeder(Engine* engine, std::vector<GenerationRequest> requests, std::vector<size_t> order)
      : engine_(engine),
        requests_(std::move(requests)),
        order_(std::move(order)),
        recordings_(requests_.size()) {
    for (auto& recording : recordings_) recording = std::make_shared<Recording>();
  }

  // Submits the next one that the engine takes.
  void SubmitNext() {
    while (true) {
      size_t index = 0;
      {
        const std::lock_guard lock(mutex_);
        if (next_ == order_.size()) return;
        index = order_[next_++];
      }
      GenerationRequest request = requests_[index];
      request.sink = std::make_shared<RecordingSink>(recordings_[index], [this] { SubmitNext(); });
      const auto id = engine_->Submit(std::move(request));
      if (id.ok()) return;
      recordings_[index]->Fail(id.status());
    }
  }

  // All answers, once the last one is there. `first` is the first one's index, for errors.
  Result<std::vector<ServedAnswer>> Wait(size_t first = 0) {
    std::vector<ServedAnswer> answers;
    Status first_failure;
    for (size_t i = 0; i < recordings_.size(); ++i) {
      Result<ServedAnswer> answer = recordings_[i]->Wait();
      if (answer.ok()) {
        answers.push_back(std::move(answer).value());
      } else if (first_failure.ok()) {
        first_failure = answer.status().WithContext(fmt::format("request {}", first + i));
      }
    }
    LOCKSTEP_RETURN_IF_ERROR(first_failure);
    return answers;
  }

 private:
  Engine* const engine_;
  const std::vector<GenerationRequest> requests_;
  const std::vector<size_t> order_;
  std::vector<std::shared_ptr<Recording>> recordings_;
  std::mutex mutex_;
  size_t next_ = 0;
};

}  // namespace

Result<std::vector<ServedAnswer>> ServeInTurn(Engine& engine,
                                              const std::vector<GenerationRequest>& requests) {
  std::vector<ServedAnswer> answers;
  for (size_t i = 0; i < requests.size(); ++i) {
    Feeder feeder(&engine, {requests[i]}, {0});
    feeder.SubmitNext();
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<ServedAnswer> served, feeder.Wait(i));
    answers.push_back(std::move(served.front()));
  }
  return answers;
}

Result<std::vector<ServedAnswer>> ServeTogether(Engine& engine,
                                                const std::vector<GenerationRequest>& requests,
                                                uint64_t order_seed) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (order_seed != 0) {
    std::mt19937_64 random(order_seed);
    std::shuffle(order.begin(), order.end(), random);
  }
  Feeder feeder(&engine, requests, std::move(order));
  for (int i = 0; i < kAtOnce; ++i) feeder.SubmitNext();
  return feeder.Wait();
}

}  // namespace lockstep
