// Rows with and without grammars in one step.
#include <gtest/gtest.h>

#include <regex>

#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::Difference;
using testing::kEos;
using testing::kVocabSize;
using testing::TestCore;
using testing::TestRequest;

std::shared_ptr<const Grammar> Regex(const std::string& text) {
  static GrammarCompiler compiler(testing::TestTokenizer(), kVocabSize, {kEos});
  GrammarSpec spec;
  spec.kind = GrammarSpec::Kind::kRegex;
  spec.text = text;
  auto grammar = compiler.Compile(spec);
  EXPECT_TRUE(grammar.ok()) << grammar.status().ToString();
  return std::move(grammar).value();
}

GenerationRequest Constrained(const std::string& regex, uint64_t salt, int max_tokens = 40) {
  GenerationRequest request = TestRequest(5 + static_cast<int>(salt), salt, max_tokens);
  request.grammar = Regex(regex);
  request.sampling.temperature = 1.0f;
  request.seed = salt;
  return request;
}

TEST(GrammarRows, EachAnswerIsOfItsGrammarAndAsAlone) {
  const std::string regexes[] = {"(ab|c){2,5}", "[a-f]{1,9}x", "", "hello", "(a|b|c)+z", ""};
  TestCore test;
  std::vector<std::shared_ptr<testing::RecordingSink>> sinks;
  std::vector<GenerationRequest> requests;
  for (uint64_t i = 0; i < std::size(regexes); ++i) {
    GenerationRequest request = TestRequest(9, i, 12);
    request.ignore_eos = true;
    if (!regexes[i].empty()) request = Constrained(regexes[i], i);
    requests.push_back(request);
    sinks.push_back(test.Submit(request));
    test.core->RunOneStep();
  }
  test.RunUntilIdle();
  for (size_t i = 0; i < sinks.size(); ++i) {
    SCOPED_TRACE(regexes[i]);
    ASSERT_TRUE(sinks[i]->ended());
    const GenerationEvent& answer = sinks[i]->merged;
    EXPECT_EQ(Difference(answer, testing::AnswerAlone(requests[i])), "");
    if (regexes[i].empty()) {
      EXPECT_EQ(answer.end->reason, FinishReason::kLength);
    } else if (answer.end->reason == FinishReason::kStop) {
      EXPECT_TRUE(std::regex_match(answer.text, std::regex(regexes[i]))) << answer.text;
    }
  }
  EXPECT_EQ(sinks[3]->merged.text, "hello");
  EXPECT_EQ(sinks[3]->merged.end->reason, FinishReason::kStop);
}

TEST(GrammarRows, ACompleteGrammarEndsTheRow) {
  for (const bool ignore_eos : {false, true}) {
    GenerationRequest request = Constrained("ab", 1);
    request.ignore_eos = ignore_eos;
    const GenerationEvent answer = testing::AnswerAlone(request);
    EXPECT_EQ(answer.text, "ab");
    EXPECT_EQ(answer.end->reason, FinishReason::kStop);
    // No end-of-sequence token was needed.
    EXPECT_EQ(answer.end->usage.completion_tokens, static_cast<int>(answer.tokens.size()));
  }
  // On the last allowed token it is a stop, before it a length.
  EXPECT_EQ(testing::AnswerAlone(Constrained("x", 1, 1)).end->reason, FinishReason::kStop);
  const GenerationEvent cut = testing::AnswerAlone(Constrained("xyxyxyxyxy", 1, 2));
  EXPECT_EQ(cut.end->reason, FinishReason::kLength);
}

// Takes no notice of masks.
class Heedless : public Executor {
 public:
  explicit Heedless(FakeOptions options) : fake_(std::move(options)) {}
  const ExecutorInfo& info() const override { return fake_.info(); }
  Status AllocateCache(const std::vector<int32_t>& blocks) override {
    return fake_.AllocateCache(blocks);
  }
  Status Step(const StepInput& input, StepOutput* output) override {
    LOCKSTEP_RETURN_IF_ERROR(fake_.Step(input, output));
    for (size_t i = 0; i < input.rows.size(); ++i) {
      if (!input.rows[i].mask.empty()) output->rows[i].token = testing::kControl;
    }
    return OkStatus();
  }

 private:
  FakeExecutor fake_;
};

TEST(GrammarRows, Case31AFailureOfAGrammarIsItsRowsAlone) {
  auto core = EngineCore::Create(std::make_unique<Heedless>(FakeOptions{}),
                                 testing::TestTokenizer(), TestCore::DefaultOptions());
  ASSERT_TRUE(core.ok());
  const auto submit = [&](GenerationRequest request, RequestId id) {
    auto sink = std::make_shared<testing::RecordingSink>();
    request.sink = sink;
    const int32_t max_tokens = request.max_tokens;
    auto sequence = (*core)->MakeSequence(std::move(request), max_tokens, {});
    sequence->set_id(id);
    (*core)->Submit(std::move(sequence));
    return sink;
  };
  GenerationRequest plain = TestRequest(9, 3, 12);
  plain.ignore_eos = true;
  const auto broken = submit(Constrained("ab", 1), 1);
  const auto well = submit(plain, 2);
  while ((*core)->RunOneStep()) {
  }
  EXPECT_EQ(broken->merged.end->reason, FinishReason::kError);
  EXPECT_EQ(broken->merged.end->status.code(), StatusCode::kInternal);
  EXPECT_EQ(Difference(well->merged, testing::AnswerAlone(plain)), "");
  EXPECT_EQ((*core)->kv().reserved_bytes(), 0);
}

}  // namespace
}  // namespace lockstep
