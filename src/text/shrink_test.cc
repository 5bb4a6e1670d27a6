#include "text/shrink.h"

#include <gtest/gtest.h>

#include <string>

#include "text/test_vocabularies.h"
#include "text/tokenizer.h"

namespace lockstep {
namespace {

std::optional<size_t> Factor(const std::string& normalizer, const std::string& pre_tokenizer,
                             const std::string& rest = R"("model":{"byte_fallback":true})") {
  return ShrinkFactor(R"({"normalizer":)" + normalizer + R"(,"pre_tokenizer":)" + pre_tokenizer +
                      "," + rest + "}");
}

TEST(ShrinkFactor, StepsThatDropNothing) {
  EXPECT_EQ(Factor("null", "null"), 1u);
  EXPECT_EQ(ShrinkFactor(R"({"model":{"byte_fallback":true}})"), 1u);
  EXPECT_EQ(Factor(R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"_"},
                      {"type":"Replace","pattern":{"String":" "},"content":"___"}]})",
                   R"({"type":"Metaspace"})"),
            1u);
  EXPECT_EQ(Factor("null", R"({"type":"Split","pattern":{"Regex":"x"},"behavior":"Isolated"})"),
            1u);
  // Byte-level alone knows every byte.
  EXPECT_EQ(Factor("null",
                   R"({"type":"Sequence","pretokenizers":[{"type":"Digits"},
                      {"type":"ByteLevel"}]})",
                   R"("model":{})"),
            1u);
}

TEST(ShrinkFactor, StepsThatShorten) {
  EXPECT_EQ(Factor(R"({"type":"NFC"})", "null"), 3u);
  EXPECT_EQ(Factor(R"({"type":"Replace","pattern":{"String":"abcde"},"content":"xx"})", "null"),
            3u);
  EXPECT_EQ(Factor(R"({"type":"Sequence","normalizers":[{"type":"NFC"},
                      {"type":"Replace","pattern":{"String":"ab"},"content":"x"}]})",
                   "null"),
            6u);
}

TEST(ShrinkFactor, StepsThatMayDropAnything) {
  EXPECT_EQ(Factor(R"({"type":"Strip"})", "null"), std::nullopt);
  EXPECT_EQ(Factor(R"({"type":"Precompiled"})", "null"), std::nullopt);
  EXPECT_EQ(Factor(R"({"type":"Replace","pattern":{"Regex":" +"},"content":" "})", "null"),
            std::nullopt);
  EXPECT_EQ(Factor(R"({"type":"Replace","pattern":{"String":" "},"content":""})", "null"),
            std::nullopt);
  EXPECT_EQ(Factor("null", R"({"type":"WhitespaceSplit"})"), std::nullopt);
  EXPECT_EQ(Factor("null", R"({"type":"Split","pattern":{"String":" "},"behavior":"Removed"})"),
            std::nullopt);
  EXPECT_EQ(Factor("null", "null", R"("model":{})"), std::nullopt);
  EXPECT_EQ(Factor("null", "null",
                   R"("model":{"byte_fallback":true},"added_tokens":[{"lstrip":false},
                      {"lstrip":false,"rstrip":true}])"),
            std::nullopt);
  EXPECT_EQ(ShrinkFactor(""), std::nullopt);
  EXPECT_EQ(ShrinkFactor("{"), std::nullopt);
  EXPECT_EQ(ShrinkFactor("[]"), std::nullopt);
}

// 256 byte tokens, and "aaaa" the longest that is made of more than one character.
TEST(FewestTokens, HoldsForEveryText) {
  const auto tokenizer = *Tokenizer::FromGguf(SentencePieceVocabulary());
  EXPECT_EQ(tokenizer->FewestTokens(0), 0u);
  EXPECT_GT(tokenizer->FewestTokens(1 << 20), (1u << 20) / 16);
  for (const char* piece :
       {"a", "hello", " ", "\u2581hello", "\u2581", "<s>", "</s>", "\xF0\x9F\xA6\x99", "\n"}) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      text += piece;
      EXPECT_LE(tokenizer->FewestTokens(text.size()), tokenizer->Encode(text)->size()) << text;
    }
  }
}

TEST(FewestTokens, AVocabularyThatLosesCharactersPromisesNothing) {
  const auto tokenizer = *Tokenizer::FromGguf(ByteLevelVocabulary());
  EXPECT_EQ(tokenizer->FewestTokens(1 << 20), 0u);
}

}  // namespace
}  // namespace lockstep
