#include "engine/mask_filler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::kEos;
using testing::kVocabSize;

std::shared_ptr<const Grammar> Letters() {
  GrammarCompiler compiler(testing::TestTokenizer(), kVocabSize, {kEos});
  GrammarSpec spec;
  spec.kind = GrammarSpec::Kind::kRegex;
  spec.text = "(ab){1000}";
  auto grammar = compiler.Compile(spec);
  EXPECT_TRUE(grammar.ok()) << grammar.status().ToString();
  return std::move(grammar).value();
}

bool Allows(const TokenMatcher& matcher, TokenId token) {
  const auto t = static_cast<size_t>(token);
  return (matcher.mask()[t / 32] >> (t % 32) & 1) != 0;
}

TEST(MaskFiller, AllMasksAreFilledWhenWaitReturns) {
  constexpr int kRows = 16;
  const auto grammar = Letters();
  std::vector<std::unique_ptr<TokenMatcher>> matchers;
  for (int i = 0; i < kRows; ++i) {
    auto matcher = grammar->Start();
    ASSERT_TRUE(matcher.ok());
    matchers.push_back(std::move(matcher).value());
  }
  MaskFiller filler(kRows);
  for (int turn = 0; turn < 150; ++turn) {
    const TokenId token = testing::IdOf(turn % 2 == 0 ? "a" : "b");
    const TokenId next = testing::IdOf(turn % 2 == 0 ? "b" : "a");
    for (const auto& matcher : matchers) {
      ASSERT_TRUE(Allows(*matcher, token)) << turn;
      ASSERT_TRUE(matcher->Accept(token).ok());
      filler.Add(matcher.get());
    }
    filler.Wait();
    for (const auto& matcher : matchers) {
      ASSERT_TRUE(Allows(*matcher, next)) << turn;
      ASSERT_FALSE(Allows(*matcher, token)) << turn;
    }
  }
}

// Comes to Wait at every moment of the filler's thread.
TEST(MaskFiller, WaitsForAMaskThatIsInTheMaking) {
  auto matcher = *Letters()->Start();
  MaskFiller filler(1);
  for (int turn = 0; turn < 1500; ++turn) {
    ASSERT_TRUE(matcher->Accept(testing::IdOf(turn % 2 == 0 ? "a" : "b")).ok());
    filler.Add(matcher.get());
    const auto late = std::chrono::steady_clock::now() + std::chrono::microseconds(turn % 100);
    while (std::chrono::steady_clock::now() < late) {
    }
    filler.Wait();
    ASSERT_TRUE(Allows(*matcher, testing::IdOf(turn % 2 == 0 ? "b" : "a"))) << turn;
  }
}

TEST(MaskFiller, WaitsForNothingWithoutMasks) {
  MaskFiller filler(1);
  filler.Wait();
  filler.Wait();
}

}  // namespace
}  // namespace lockstep
