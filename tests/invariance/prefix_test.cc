// The bytes of an answer are the same whether its prompt is computed or taken over from the cache,
// for every length that can be taken over.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/cpu/kv_store.h"
#include "random_tokens.h"
#include "workload.h"

namespace lockstep {
namespace {

constexpr int32_t kBlock = kernels::kBlockTokens;

// Penalties look at the whole prompt, wherever its cache came from.
GenerationRequest RequestOf(std::vector<TokenId> prompt, const std::string& salt) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = 20;
  request.ignore_eos = true;
  request.seed = 7;
  request.sampling.repetition_penalty = 1.3f;
  request.sampling.presence_penalty = 0.5f;
  request.sampling.logprobs = 3;
  request.cache_salt = salt;
  return request;
}

struct Case {
  const char* model;
  const char* kv;
};

class PrefixHits : public testing::TestWithParam<Case> {};

TEST_P(PrefixHits, GiveTheBytesOfAColdRunAtEveryLength) {
  const std::string model = TinyModel(GetParam().model);
  // 200 tokens: the last 8 are no whole block. And a whole number of blocks, whose last one has to
  // be computed again.
  for (const int32_t length : {200, 5 * kBlock}) {
    const std::vector<TokenId> prompt = RandomTokens(length, 1);
    const Serving serving{
        .threads = 2, .kv = KvSchemeByName(GetParam().kv).value(), .step_tokens = 48};
    Serving cold = serving;
    cold.alone = true;
    const auto expected = Serve(model, cold, {RequestOf(prompt, "")});
    ASSERT_EQ(expected.size(), 1u);

    std::vector<GenerationRequest> requests;
    for (int32_t shared = 0; shared < length; shared += kBlock) {
      // A salt of its own, so that nothing else is found.
      const std::string salt = "prefix of " + std::to_string(shared);
      std::vector<TokenId> first(prompt.begin(), prompt.begin() + shared);
      const std::vector<TokenId> tail = RandomTokens(20, 2);
      first.insert(first.end(), tail.begin(), tail.end());
      requests.push_back(RequestOf(first, salt));
      requests.push_back(RequestOf(prompt, salt));
    }
    const auto served = ServeInTurn(model, serving, requests);
    ASSERT_EQ(served.size(), requests.size());
    for (size_t i = 1; i < served.size(); i += 2) {
      EXPECT_EQ(served[i].cached_tokens, static_cast<int32_t>(i / 2) * kBlock);
      EXPECT_EQ(served[i].bytes == expected[0], true) << "after " << i / 2 << " blocks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PrefixHits,
    testing::Values(Case{"tiny-llama-f32", "f32"}, Case{"tiny-llama-f32", "bf16"},
                    Case{"tiny-llama-bf16", "f16"}, Case{"tiny-llama-q4_1.gguf", "bf16"},
                    Case{"tiny-llama-q4_1.gguf", "q8"}, Case{"tiny-llama-q4_1.gguf", "q4"},
                    Case{"tiny-qwen3moe-bf16", "bf16"}, Case{"tiny-gemma3-f32", "bf16"},
                    Case{"tiny-qwen35-f32", "f32"}, Case{"tiny-qwen35-bf16", "q8"},
                    Case{"tiny-qwen35-mlx-8-g32", "bf16"}, Case{"tiny-deepseek3-bf16", "bf16"},
                    Case{"tiny-deepseek3-mlx-4-g32", "q8"}));

class PrefixTurns : public testing::TestWithParam<const char*> {};

// Turn by turn, each prompt being the one before, its answer and something new.
TEST_P(PrefixTurns, AChatComputesOnlyWhatIsNew) {
  const std::string model = TinyModel(GetParam());
  std::vector<GenerationRequest> turns;
  for (int32_t turn = 1; turn <= 6; ++turn) {
    turns.push_back(RequestOf(RandomTokens(40 * turn, 3), ""));
    turns.back().stable_tokens = 40 * turn;
  }
  Serving cold{.alone = true};
  const auto expected = Serve(model, cold, turns);
  const auto served = ServeInTurn(model, {}, turns);
  ASSERT_EQ(served.size(), turns.size());
  for (size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(served[i].cached_tokens, static_cast<int32_t>(40 * i) / kBlock * kBlock);
    EXPECT_EQ(served[i].bytes == expected[i], true) << "turn " << i + 1;
  }
}

// Of positions, of windows and of states.
INSTANTIATE_TEST_SUITE_P(All, PrefixTurns,
                         testing::Values("tiny-llama-q4_1.gguf", "tiny-gemma3-bf16",
                                         "tiny-qwen35-bf16"));

}  // namespace
}  // namespace lockstep
