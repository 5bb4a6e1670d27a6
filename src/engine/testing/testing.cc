#include "engine/testing/testing.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "text/gguf_vocabulary.h"

namespace lockstep::testing {
namespace {

std::shared_ptr<const Tokenizer> MakeTokenizer() {
  // Byte-level BPE writes each byte as a character; bytes from 0xA1 on stand for themselves in
  // Latin-1, so that "\u00C3" and "\u00A9" are the halves of U+00E9 in UTF-8, and the three after
  // them the thirds of U+28E1.
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  vocabulary.tokens = {"<eos>", "<control>"};
  for (char letter = 'a'; letter <= 'z'; ++letter) vocabulary.tokens.push_back({letter});
  for (const char* piece :
       {"ab",     "bc",     "cd",     "de",     "abc",    "bcd",    "xyz",     "zz",
        "\u00C3", "\u00A9", "\u00E2", "\u00A3", "\u00A1", "\u0120", "\u0120a", "\u0120b",
        ".",      "!",      "a.",     "STOP",   "ST",     "OP"}) {
    vocabulary.tokens.push_back(piece);
  }
  LOCKSTEP_CHECK(vocabulary.tokens.size() == kVocabSize);
  vocabulary.token_types.assign(vocabulary.tokens.size(),
                                static_cast<int32_t>(GgufTokenType::kNormal));
  vocabulary.token_types[kEos] = static_cast<int32_t>(GgufTokenType::kControl);
  vocabulary.token_types[kControl] = static_cast<int32_t>(GgufTokenType::kControl);
  vocabulary.merges = {"a b", "b c", "c d", "d e", "ab c", "b cd", "z z"};
  vocabulary.eos_id = kEos;
  auto tokenizer = Tokenizer::FromGguf(vocabulary);
  if (!tokenizer.ok()) fmt::print(stderr, "{}\n", tokenizer.status().ToString());
  return std::move(tokenizer).value();
}

std::string Describe(const PositionLogprobs& logprobs) {
  std::string text = fmt::format("{}:{}", logprobs.token, logprobs.logprob);
  for (const TokenLogprob& top : logprobs.top) text += fmt::format(",{}:{}", top.id, top.logprob);
  return text;
}

std::string Describe(const GenerationEvent& event) {
  std::string text = fmt::format("text \"{}\"\n", event.text);
  for (const TokenEvent& token : event.tokens) {
    text += fmt::format("token {} \"{}\" {}\n", token.id, token.bytes, Describe(token.logprobs));
  }
  for (const PositionLogprobs& prompt : event.prompt) text += "prompt " + Describe(prompt) + "\n";
  if (event.end) {
    text += fmt::format("end {} \"{}\" {} {} {} {}\n", static_cast<int>(event.end->reason),
                        event.end->stop, event.end->stop_token.value_or(-1),
                        event.end->status.ToString(), event.end->usage.prompt_tokens,
                        event.end->usage.completion_tokens);
  }
  return text;
}

}  // namespace

std::shared_ptr<const Tokenizer> TestTokenizer() {
  static const auto tokenizer = MakeTokenizer();
  return tokenizer;
}

TokenId IdOf(const std::string& bytes) {
  for (TokenId id = 0; id < kVocabSize; ++id) {
    if (TestTokenizer()->TokenBytes(id) == bytes) return id;
  }
  LOCKSTEP_CHECK(false);
}

EventSink::Answer RecordingSink::Offer(GenerationEvent event) {
  LOCKSTEP_CHECK(event.prompt.empty() || offers == 0);
  MergeEvent(std::move(event), &merged);
  return answer(offers++);
}

std::vector<TokenId> RecordingSink::ids() const {
  std::vector<TokenId> ids;
  for (const TokenEvent& token : merged.tokens) ids.push_back(token.id);
  return ids;
}

EngineOptions TestCore::DefaultOptions() {
  EngineOptions options;
  options.kv_bytes = 64 << 10;
  options.max_rows = 8;
  options.step_tokens = 64;
  options.eos_ids = {kEos};
  return options;
}

TestCore::TestCore(FakeOptions fake, EngineOptions engine) {
  auto made = EngineCore::Create(std::make_unique<FakeExecutor>(std::move(fake)), TestTokenizer(),
                                 std::move(engine), [this] { return now; });
  if (!made.ok()) fmt::print(stderr, "{}\n", made.status().ToString());
  core = std::move(made).value();
}

std::shared_ptr<RecordingSink> TestCore::Submit(GenerationRequest request) {
  const auto max_tokens = CheckRequest(request, core->limits());
  if (!max_tokens.ok()) fmt::print(stderr, "{}\n", max_tokens.status().ToString());
  auto sink = std::make_shared<RecordingSink>();
  request.sink = sink;
  auto sequence = core->MakeSequence(std::move(request), max_tokens.value(), now);
  sequence->set_id(next_id++);
  core->Submit(std::move(sequence));
  return sink;
}

int TestCore::RunUntilIdle(int at_most) {
  for (int n = 1; n <= at_most; ++n) {
    if (!core->RunOneStep()) return n;
  }
  LOCKSTEP_CHECK(false);
}

std::vector<TokenId> TestPrompt(int length, uint64_t salt) {
  std::vector<TokenId> prompt;
  for (int i = 0; i < length; ++i) {
    salt = salt * 6364136223846793005u + 1442695040888963407u;
    prompt.push_back(static_cast<TokenId>(2 + (salt >> 33) % (kVocabSize - 2)));
  }
  return prompt;
}

GenerationRequest TestRequest(int prompt_length, uint64_t salt, int max_tokens) {
  GenerationRequest request;
  request.prompt = TestPrompt(prompt_length, salt);
  request.max_tokens = max_tokens;
  request.sampling.seed = salt;
  request.seed = salt;
  return request;
}

GenerationEvent AnswerAlone(GenerationRequest request) {
  TestCore test;
  const auto sink = test.Submit(std::move(request));
  test.RunUntilIdle();
  return sink->merged;
}

std::string Difference(const GenerationEvent& a, const GenerationEvent& b) {
  const std::string left = Describe(a);
  const std::string right = Describe(b);
  return left == right ? "" : left + "---- differs from ----\n" + right;
}

}  // namespace lockstep::testing
