// What the engine's tests share: a tiny tokenizer, a sink that records, a clock that stands still,
// and a core over the fake executor. Not part of the product.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/bounded_sink.h"
#include "engine/engine_core.h"
#include "engine/request.h"
#include "executor/fake/fake_executor.h"
#include "text/tokenizer.h"

namespace lockstep::testing {

inline constexpr TokenId kEos = 0;
inline constexpr TokenId kControl = 1;  // a control token that ends nothing
inline constexpr int32_t kVocabSize = 50;

// kVocabSize tokens: the two above, the letters, some pairs, and pieces of characters.
std::shared_ptr<const Tokenizer> TestTokenizer();

// The id of the token that stands for `bytes`; dies if there is none.
TokenId IdOf(const std::string& bytes);

// Records what it is offered.
class RecordingSink : public EventSink {
 public:
  Answer Offer(GenerationEvent event) override;
  bool ready() const override { return is_ready; }

  // What the n-th offer (from 0) answers; may throw or call back into the engine.
  std::function<Answer(int n)> answer = [](int) { return Answer::kReady; };
  bool is_ready = true;

  GenerationEvent merged;
  int offers = 0;
  bool ended() const { return merged.end.has_value(); }
  std::vector<TokenId> ids() const;
};

// A core on a clock that only the test moves.
struct TestCore {
  explicit TestCore(FakeOptions fake = {}, EngineOptions engine = DefaultOptions());
  static EngineOptions DefaultOptions();  // eos, 64 KiB of cache, 8 rows, 64 tokens a step

  // Checks and submits; the sink that records the answer.
  std::shared_ptr<RecordingSink> Submit(GenerationRequest request);
  RequestId last_id() const { return next_id - 1; }

  // Steps until RunOneStep says that there is nothing to do; how many calls that took.
  int RunUntilIdle(int at_most = 10000);

  std::chrono::steady_clock::time_point now{std::chrono::seconds(1)};
  RequestId next_id = 1;
  std::unique_ptr<EngineCore> core;
};

// A prompt of letters that differs with `salt`.
std::vector<TokenId> TestPrompt(int length, uint64_t salt);
GenerationRequest TestRequest(int prompt_length, uint64_t salt, int max_tokens);

// The answer to a request that has a core of its own.
GenerationEvent AnswerAlone(GenerationRequest request);

// Whether two answers are equal in every byte that a client can see; a gtest message otherwise.
std::string Difference(const GenerationEvent& a, const GenerationEvent& b);

}  // namespace lockstep::testing
