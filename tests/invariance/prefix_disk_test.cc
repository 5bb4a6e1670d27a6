// The bytes of an answer are the same whether its prompt is computed or comes back from disk after
// a restart, for every length that can come back.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "executor/cpu/kv_store.h"
#include "random_tokens.h"
#include "workload.h"

namespace lockstep {
namespace {

constexpr int32_t kBlock = kernels::kBlockTokens;
constexpr int32_t kLength = 200;

GenerationRequest RequestOf(std::vector<TokenId> prompt, const std::string& salt) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = 12;
  request.ignore_eos = true;
  request.seed = 7;
  request.sampling.repetition_penalty = 1.3f;
  request.sampling.logprobs = 3;
  request.cache_salt = salt;
  return request;
}

std::string SaltOf(int32_t shared) { return "prefix of " + std::to_string(shared); }

struct Case {
  const char* model;
  const char* kv;
};

class PrefixesFromDisk : public testing::TestWithParam<Case> {
 protected:
  PrefixesFromDisk() : folder_(testing::TempDir() + "prefixes_from_disk") {
    std::filesystem::remove_all(folder_);
  }
  ~PrefixesFromDisk() override { std::filesystem::remove_all(folder_); }

  // Serves on an engine of its own that ends afterwards.
  std::vector<ServedAnswer> ServeOnce(const Serving& serving,
                                      const std::vector<GenerationRequest>& requests) {
    auto engine = MakeEngine(TinyModel(GetParam().model), serving);
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    if (!engine.ok()) return {};
    auto served = ServeInTurn(**engine, requests);
    EXPECT_TRUE(served.ok()) << served.status().ToString();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    EXPECT_TRUE((*engine)->FlushPrefixes(deadline).ok());
    const EngineStats stats = (*engine)->stats();
    restored_ = stats.prefix_transfer.tokens;
    corrupt_ = stats.prefix_store->corrupt;
    return served.ok() ? std::move(served).value() : std::vector<ServedAnswer>();
  }

  const std::string folder_;
  uint64_t restored_ = 0;
  uint64_t corrupt_ = 0;
};

TEST_P(PrefixesFromDisk, GiveTheBytesOfAColdRunAtEveryLength) {
  const std::vector<TokenId> prompt = RandomTokens(kLength, 1);
  Serving serving{.threads = 2, .kv = KvSchemeByName(GetParam().kv).value(), .step_tokens = 48};
  Serving cold = serving;
  cold.alone = true;
  const auto expected = Serve(TinyModel(GetParam().model), cold, {RequestOf(prompt, "")});
  ASSERT_EQ(expected.size(), 1u);

  serving.prefix_dir = folder_;
  std::vector<GenerationRequest> first;
  std::vector<GenerationRequest> second;
  for (int32_t shared = 0; shared < kLength; shared += kBlock) {
    std::vector<TokenId> other(prompt.begin(), prompt.begin() + shared);
    const std::vector<TokenId> tail = RandomTokens(20, 2);
    other.insert(other.end(), tail.begin(), tail.end());
    first.push_back(RequestOf(other, SaltOf(shared)));
    second.push_back(RequestOf(prompt, SaltOf(shared)));
  }
  ServeOnce(serving, first);
  // Other threads, other cuts.
  serving.threads = 1;
  serving.step_tokens = 128;
  const auto served = ServeOnce(serving, second);
  ASSERT_EQ(served.size(), second.size());
  uint64_t cached = 0;
  for (size_t i = 0; i < served.size(); ++i) {
    EXPECT_EQ(served[i].cached_tokens, static_cast<int32_t>(i) * kBlock);
    EXPECT_EQ(served[i].bytes == expected[0], true) << "after " << i << " blocks";
    cached += static_cast<uint64_t>(served[i].cached_tokens);
  }
  EXPECT_EQ(restored_, cached);
  EXPECT_EQ(corrupt_, 0u);
}

TEST_P(PrefixesFromDisk, SpoiltFilesChangeNoByte) {
  const std::vector<TokenId> prompt = RandomTokens(kLength, 1);
  const Serving serving{.kv = KvSchemeByName(GetParam().kv).value(), .prefix_dir = folder_};
  const auto expected = ServeOnce(serving, {RequestOf(prompt, "")});
  ASSERT_EQ(expected.size(), 1u);
  // One byte of every second file.
  std::mt19937_64 random(3);
  size_t spoilt = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    if (file.path().extension() != ".lsprefix" || random() % 2 == 0) continue;
    const auto at = random() % file.file_size();
    std::FILE* const open = std::fopen(file.path().c_str(), "r+b");
    ASSERT_NE(open, nullptr);
    std::fseek(open, static_cast<long>(at), SEEK_SET);
    const int byte = std::fgetc(open);
    std::fseek(open, static_cast<long>(at), SEEK_SET);
    std::fputc(byte ^ 0x10, open);
    std::fclose(open);
    ++spoilt;
  }
  ASSERT_GT(spoilt, 0u);
  const auto served = ServeOnce(serving, {RequestOf(prompt, "")});
  ASSERT_EQ(served.size(), 1u);
  EXPECT_EQ(served[0].bytes == expected[0].bytes, true);
  EXPECT_GT(corrupt_, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, PrefixesFromDisk,
    testing::Values(Case{"tiny-llama-q4_1.gguf", "f32"}, Case{"tiny-llama-q4_1.gguf", "f16"},
                    Case{"tiny-llama-q4_1.gguf", "bf16"}, Case{"tiny-llama-q4_1.gguf", "q8"},
                    Case{"tiny-llama-q4_1.gguf", "q4"}, Case{"tiny-gemma3-bf16", "bf16"},
                    Case{"tiny-gemma3-f32", "f32"}, Case{"tiny-qwen35-bf16", "bf16"},
                    Case{"tiny-qwen35-mlx-8-g32", "q8"}, Case{"tiny-deepseek3-bf16", "bf16"},
                    Case{"tiny-deepseek3-mlx-4-g32", "q8"}));

}  // namespace
}  // namespace lockstep
