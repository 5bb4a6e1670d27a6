// `lockstep verify` finds no difference where there is none, and one where a kernel makes one.
#include "apps/verify/verify.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "crooked_kernel.h"
#include "executor/cpu/kv_store.h"
#include "workload.h"

namespace lockstep {
namespace {

std::vector<Variation> Variations(const std::string& model, const Serving& serving, bool* same) {
  std::vector<Variation> variations;
  const auto result = Verify(
      [&](int32_t threads, std::function<int32_t(int32_t)> cut) {
        Serving with = serving;
        with.threads = threads;
        return MakeEngine(model, with, std::move(cut));
      },
      {.requests = 16, .threads = 2}, [&](const Variation& v) { variations.push_back(v); });
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  *same = result.ok() && *result;
  return variations;
}

// A family and a scheme of its cache.
class Verified : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Verified, HasTheSameBytes) {
  const auto [model, scheme] = GetParam();
  bool same = false;
  const std::vector<Variation> variations =
      Variations(TinyModel(model), {.kv = KvSchemeByName(scheme).value()}, &same);
  EXPECT_TRUE(same);
  EXPECT_EQ(variations.size(), 11u);
  for (const Variation& variation : variations) {
    EXPECT_EQ(variation.different, 0) << variation.name << ": " << variation.first;
    EXPECT_EQ(variation.answers, 16);
    EXPECT_EQ(variation.tokens, variations.front().tokens);
  }
  EXPECT_EQ(variations.front().cached_tokens, 0);
  EXPECT_GT(variations.back().cached_tokens, 100);
}

INSTANTIATE_TEST_SUITE_P(All, Verified,
                         testing::Combine(testing::Values("tiny-llama-q4_1.gguf", "tiny-qwen3-bf16",
                                                          "tiny-gemma3-bf16", "tiny-qwen35-bf16"),
                                          testing::Values("f32", "f16", "bf16", "q8", "q4")));
// Heads of 16, which no group of codes fits.
INSTANTIATE_TEST_SUITE_P(SmallHeads, Verified,
                         testing::Combine(testing::Values("tiny-qwen2-f16",
                                                          "tiny-qwen3moe-q8_0.gguf"),
                                          testing::Values("f32", "f16", "bf16")));

TEST(Verify, FindsAKernelThatDependsOnTheRows) {
  const kernels::KernelTable crooked = CrookedTable();
  bool same = true;
  const auto variations = Variations(TinyModel("tiny-llama-f32"), {.kernels = &crooked}, &same);
  EXPECT_FALSE(same);
  int different = 0;
  for (const Variation& variation : variations) {
    if (variation.different == 0) continue;
    ++different;
    EXPECT_NE(variation.first, "");
  }
  EXPECT_GT(different, 0);
  EXPECT_EQ(variations.front().different, 0);
}

}  // namespace
}  // namespace lockstep
