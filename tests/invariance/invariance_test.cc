// The promise, shown: the bytes of an answer are the same alone and among any neighbours, however
// its prompt is cut, whenever it joins, with any number of threads and on every instruction set.
// And the check can fail: a kernel whose arithmetic depends on the number of rows is caught.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "crooked_kernel.h"
#include "executor/cpu/kv_store.h"
#include "workload.h"

namespace lockstep {
namespace {

constexpr int32_t kRequests = 64;

std::string SmolLm2() {
  if (const char* path = std::getenv("LOCKSTEP_TEST_MODEL")) return path;
  const char* cache = std::getenv("LOCKSTEP_CACHE");
  const std::string base =
      cache != nullptr ? cache : std::string(std::getenv("HOME")) + "/.cache/lockstep";
  return base + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

const kernels::KernelTable& Best() { return *kernels::SupportedTables().front(); }

// Indices of the answers that differ.
std::vector<size_t> Differences(const std::vector<std::string>& a,
                                const std::vector<std::string>& b) {
  EXPECT_EQ(a.size(), b.size());
  std::vector<size_t> different;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i]) different.push_back(i);
  }
  return different;
}

// Whether the mix has what it is meant to have.
void ExpectMixed(const std::vector<GenerationRequest>& requests,
                 const std::vector<std::string>& answers) {
  int stopped = 0;
  int further_choices = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    for (const std::string& stop : requests[i].stop.strings())
      stopped += answers[i].ends_with(stop);
    further_choices += requests[i].sampling.stream > 0;
  }
  EXPECT_GT(stopped, 0);
  EXPECT_GT(further_choices, 0);
}

void ExpectTheSameTogether(const std::string& model, int32_t vocab_size, int32_t longest_prompt,
                           const std::vector<const kernels::KernelTable*>& tables,
                           const std::vector<uint64_t>& cuts, const std::string& kv = "bf16") {
  const kernels::KvScheme scheme = KvSchemeByName(kv).value();
  const auto requests = MixedRequests(kRequests, vocab_size, longest_prompt, 11);
  const auto alone = Serve(model, {.kernels = &Best(), .kv = scheme, .alone = true}, requests);
  ASSERT_EQ(alone.size(), requests.size());
  ExpectMixed(requests, alone);
  const std::vector<size_t> none;
  for (const kernels::KernelTable* table : tables) {
    for (int32_t threads : {1, 2}) {
      for (uint64_t cuts_and_order : cuts) {
        SCOPED_TRACE(std::string(table->isa) + ", threads " + std::to_string(threads) + ", cuts " +
                     std::to_string(cuts_and_order));
        const auto together = Serve(
            model,
            {.kernels = table, .threads = threads, .kv = scheme, .cuts_and_order = cuts_and_order},
            requests);
        EXPECT_EQ(Differences(alone, together), none);
      }
    }
  }
}

class TinyModels : public testing::TestWithParam<const char*> {};

TEST_P(TinyModels, EveryIsaThreadCountAndCutGivesTheSameBytes) {
  ExpectTheSameTogether(TinyModel(GetParam()), 256, 120, kernels::SupportedTables(), {0, 1, 2});
}

INSTANTIATE_TEST_SUITE_P(
    All, TinyModels,
    testing::Values("tiny-llama-bf16", "tiny-llama-f32", "tiny-llama-f16", "tiny-llama-q8_0.gguf",
                    "tiny-llama-q4_1.gguf", "tiny-llama-q4_0-q6_k.gguf", "tiny-qwen2-q8_0.gguf",
                    "tiny-qwen3-bf16", "tiny-qwen3-q4_0.gguf", "tiny-qwen3moe-bf16",
                    "tiny-qwen3moe-q8_0.gguf", "tiny-qwen35-bf16", "tiny-qwen35-f32",
                    "tiny-qwen35-mlx-8-g32", "tiny-gemma3-bf16", "tiny-gemma3-q4_1.gguf",
                    "tiny-deepseek3-f16", "tiny-deepseek3-mlx-4-g32", "tiny-deepseek3-q8_0.gguf"));

// A window of 70 positions over the boundary of attention's splits at 256.
TEST(Windows, TheSameBytesFarPastTheWindow) {
  ExpectTheSameTogether(TinyModel("tiny-gemma3-f32"), 256, 400, kernels::SupportedTables(), {0, 1});
}

// Over the boundary of attention's splits.
TEST(Latents, TheSameBytesOfLongSequences) {
  ExpectTheSameTogether(TinyModel("tiny-deepseek3-bf16"), 256, 400, kernels::SupportedTables(),
                        {0, 1});
}

TEST(Latents, TheSameBytesOneTokenAtATime) {
  const std::string model = TinyModel("tiny-deepseek3-bf16");
  const auto requests = MixedRequests(12, 256, 200, 13);
  const auto whole = Serve(model, {.kernels = &Best(), .alone = true}, requests);
  const auto single =
      Serve(model, {.kernels = &Best(), .step_tokens = 1, .max_rows = 1, .alone = true}, requests);
  EXPECT_EQ(Differences(whole, single), std::vector<size_t>());
}

class LatentCodecs : public testing::TestWithParam<const char*> {};

TEST_P(LatentCodecs, EveryIsaThreadCountAndCutGivesTheSameBytes) {
  ExpectTheSameTogether(TinyModel("tiny-deepseek3-mlx-4-g32"), 256, 300, kernels::SupportedTables(),
                        {1}, GetParam());
}

// Latents and rotary keys of 32 elements each.
INSTANTIATE_TEST_SUITE_P(All, LatentCodecs, testing::Values("f32", "f16", "q8", "q4"));

// Prompts in steps of one token, and in steps as large as may be.
TEST(States, OneTokenAtATimeGivesTheSameBytes) {
  const std::string model = TinyModel("tiny-qwen35-bf16");
  const auto requests = MixedRequests(kRequests, 256, 120, 13);
  const auto whole = Serve(model, {.alone = true}, requests);
  EXPECT_EQ(
      Differences(whole, Serve(model, {.step_tokens = 1, .max_rows = 1, .alone = true}, requests)),
      std::vector<size_t>());
}

class Codecs : public testing::TestWithParam<const char*> {};

TEST_P(Codecs, EveryIsaThreadCountAndCutGivesTheSameBytes) {
  ExpectTheSameTogether(TinyModel("tiny-llama-bf16"), 256, 300, kernels::SupportedTables(), {0, 1},
                        GetParam());
}

// Of 32 elements a head, which are a group. bf16 is that of all the other tests.
INSTANTIATE_TEST_SUITE_P(All, Codecs, testing::Values("f32", "f16", "q8", "q4"));

TEST(RealModel, TheSameBytesAloneAndTogether) {
  ExpectTheSameTogether(SmolLm2(), 49152, 400, {&Best()}, {0, 1});
}

// A few short requests: the plain C++ table takes its time.
TEST(RealModel, TheSameBytesOnEveryIsa) {
  const auto requests = MixedRequests(6, 49152, 40, 12);
  const kernels::KvScheme scheme = KvSchemeByName("bf16").value();
  std::vector<std::string> first;
  for (const kernels::KernelTable* table : kernels::SupportedTables()) {
    SCOPED_TRACE(table->isa);
    const auto answers = Serve(
        SmolLm2(), {.kernels = table, .threads = 2, .kv = scheme, .cuts_and_order = 1}, requests);
    ASSERT_EQ(answers.size(), requests.size());
    if (first.empty()) first = answers;
    EXPECT_EQ(Differences(first, answers), std::vector<size_t>());
  }
}

TEST(RealModel, TheSameBytesWithACacheOfCodes) {
  ExpectTheSameTogether(SmolLm2(), 49152, 400, {&Best()}, {1}, "q8-64");
}

TEST(Inverse, AKernelThatDependsOnTheRowsIsCaught) {
  const kernels::KernelTable crooked = CrookedTable();
  const auto requests = MixedRequests(kRequests, 256, 120, 11);
  const std::string model = TinyModel("tiny-llama-f32");
  const auto alone = Serve(model, {.kernels = &crooked, .alone = true}, requests);
  const auto together = Serve(model, {.kernels = &crooked, .cuts_and_order = 1}, requests);
  EXPECT_FALSE(Differences(alone, together).empty());
}

}  // namespace
}  // namespace lockstep
