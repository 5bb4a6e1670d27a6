#include "workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <mutex>
#include <numeric>
#include <random>

#include "apps/common/gguf_vocabulary_from_file.h"
#include "engine/collect.h"
#include "executor/cpu/cpu_executor.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace lockstep {
namespace {

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

// An answer under way: its bytes so far, and the promise that is kept at its end.
struct Recording {
  std::string text;
  std::string bytes;
  std::promise<Served> whole;

  void Add(const GenerationEvent& event) {
    text += event.text;
    for (const PositionLogprobs& position : event.prompt) AppendLogprobs(position, &bytes);
    for (const TokenEvent& token : event.tokens) {
      AppendBits(token.id, &bytes);
      bytes += token.bytes;
      AppendLogprobs(token.logprobs, &bytes);
    }
    if (!event.end) return;
    EXPECT_TRUE(event.end->status.ok()) << event.end->status.ToString();
    AppendBits(event.end->reason, &bytes);
    AppendBits(event.end->usage.prompt_tokens, &bytes);
    AppendBits(event.end->usage.completion_tokens, &bytes);
    whole.set_value({text + '\0' + bytes + event.end->stop, event.end->usage.cached_tokens});
  }
};

// Records, and submits further requests when its own has grown: arrivals fall into the middle of
// running batches without any clock.
class ArrivalSink : public EventSink {
 public:
  ArrivalSink(std::shared_ptr<Recording> recording, std::function<void()> on_event)
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

Result<std::unique_ptr<Engine>> MakeEngine(const std::string& model_path, const Serving& serving) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::Open(model_path));
  std::shared_ptr<const Tokenizer> tokenizer;
  if (checkpoint->gguf() != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary,
                              GgufVocabularyFromMetadata(checkpoint->gguf()->metadata()));
    LOCKSTEP_ASSIGN_OR_RETURN(tokenizer, Tokenizer::FromGguf(vocabulary));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(tokenizer, Tokenizer::FromHfFolder(model_path));
  }
  CpuExecutorOptions cpu;
  cpu.kernels = serving.kernels;
  cpu.threads = serving.threads;
  cpu.kv = serving.kv;
  cpu.max_step_tokens = serving.step_tokens;
  cpu.max_step_rows = serving.max_rows;
  LOCKSTEP_ASSIGN_OR_RETURN(auto executor, MakeCpuExecutor(checkpoint, cpu));
  EngineOptions options;
  options.kv_bytes = int64_t{512} << 20;
  options.max_rows = serving.max_rows;
  options.step_tokens = serving.step_tokens;
  options.prefix_cache = !serving.alone;
  if (serving.cuts_and_order != 0) {
    options.chunk_cut = [random = std::mt19937_64(serving.cuts_and_order)](int32_t want) mutable {
      return static_cast<int32_t>(random() % want) + 1;
    };
  }
  return Engine::Create(std::move(executor), tokenizer, std::move(options));
}

std::vector<size_t> Order(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  if (seed != 0) {
    std::mt19937_64 random(seed);
    std::shuffle(order.begin(), order.end(), random);
  }
  return order;
}

// Feeds the requests to an engine: a few at once, then one more at every event of a running one.
class Feeder {
 public:
  Feeder(Engine* engine, std::vector<GenerationRequest> requests, std::vector<size_t> order)
      : engine_(engine),
        requests_(std::move(requests)),
        order_(std::move(order)),
        recordings_(requests_.size()) {
    for (auto& recording : recordings_) recording = std::make_shared<Recording>();
  }

  void SubmitNext() {
    size_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      if (next_ == order_.size()) return;
      index = order_[next_++];
    }
    GenerationRequest request = requests_[index];
    request.sink = std::make_shared<ArrivalSink>(recordings_[index], [this] { SubmitNext(); });
    const auto id = engine_->Submit(std::move(request));
    ASSERT_TRUE(id.ok()) << id.status().ToString();
  }

  Served Wait(size_t index) { return recordings_[index]->whole.get_future().get(); }

 private:
  Engine* engine_;
  const std::vector<GenerationRequest> requests_;
  const std::vector<size_t> order_;
  std::vector<std::shared_ptr<Recording>> recordings_;
  std::mutex mutex_;
  size_t next_ = 0;
};

std::vector<Served> InTurn(Engine* engine, const std::vector<GenerationRequest>& requests) {
  std::vector<Served> answers;
  for (const GenerationRequest& request : requests) {
    Feeder feeder(engine, {request}, {0});
    feeder.SubmitNext();
    answers.push_back(feeder.Wait(0));
  }
  return answers;
}

}  // namespace

std::vector<GenerationRequest> MixedRequests(int32_t count, int32_t vocab_size,
                                             int32_t longest_prompt, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t bound) { return static_cast<int32_t>(random() % bound); };
  std::vector<GenerationRequest> requests(count);
  for (GenerationRequest& request : requests) {
    const int32_t length =
        1 + (below(4) == 0 ? below(longest_prompt) : below(longest_prompt / 8 + 1));
    for (int32_t i = 0; i < length; ++i) request.prompt.push_back(below(vocab_size));
    request.max_tokens = 1 + below(24);
    request.ignore_eos = below(2) == 0;
    request.seed = random();
    SamplingParams& sampling = request.sampling;
    sampling.temperature = below(3) == 0 ? 0.0f : 0.3f + 0.1f * below(15);
    if (below(3) == 0) sampling.top_k = 1 + below(50);
    if (below(3) == 0) sampling.top_p = 0.5f + 0.05f * below(10);
    if (below(4) == 0) sampling.min_p = 0.02f * below(10);
    if (below(3) == 0) sampling.repetition_penalty = 1.0f + 0.1f * below(5);
    if (below(4) == 0) sampling.presence_penalty = 0.5f * below(4);
    if (below(4) == 0) sampling.frequency_penalty = 0.5f * below(4);
    if (below(4) == 0) sampling.logit_bias = {{below(vocab_size), 5.0f}};
    if (below(2) == 0) sampling.logprobs = below(6);
    if (below(6) == 0) request.prompt_logprobs = below(4);
    if (below(3) == 0) request.stop = {"e", " a", "0", "never to be seen"};
    // Further choices of one request, as the API makes them of n.
    if (&request > &requests[1] && below(6) == 0) {
      request = (&request)[-1];
      ++request.sampling.stream;
    }
  }
  return requests;
}

std::vector<std::string> Serve(const std::string& model_path, const Serving& serving,
                               const std::vector<GenerationRequest>& requests) {
  auto engine = MakeEngine(model_path, serving);
  EXPECT_TRUE(engine.ok()) << engine.status().ToString();
  if (!engine.ok()) return {};
  std::vector<std::string> answers;
  if (serving.alone) {
    for (Served& served : InTurn(engine->get(), requests)) {
      answers.push_back(std::move(served.bytes));
    }
    return answers;
  }
  Feeder feeder(engine->get(), requests, Order(requests.size(), serving.cuts_and_order));
  for (int32_t i = 0; i < 3; ++i) feeder.SubmitNext();
  for (size_t i = 0; i < requests.size(); ++i) answers.push_back(feeder.Wait(i).bytes);
  return answers;
}

std::vector<Served> ServeInTurn(const std::string& model_path, const Serving& serving,
                                const std::vector<GenerationRequest>& requests) {
  auto engine = MakeEngine(model_path, serving);
  EXPECT_TRUE(engine.ok()) << engine.status().ToString();
  if (!engine.ok()) return {};
  return InTurn(engine->get(), requests);
}

}  // namespace lockstep
