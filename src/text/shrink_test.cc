#include "text/shrink.h"

#include <gtest/gtest.h>

#include <string>

#include "text/test_vocabularies.h"
#include "text/tokenizer.h"

namespace lockstep {
namespace {

std::optional<TextShrink> Of(const std::string& normalizer, const std::string& pre_tokenizer,
                             const std::string& rest = R"("model":{"byte_fallback":true})") {
  return ShrinkOf(R"({"normalizer":)" + normalizer + R"(,"pre_tokenizer":)" + pre_tokenizer + "," +
                  rest + "}");
}

template <typename... Args>
std::optional<size_t> Factor(const Args&... args) {
  const auto shrink = Of(args...);
  return shrink ? std::optional<size_t>(shrink->factor) : std::nullopt;
}

TEST(TextShrink, StepsThatDropNothing) {
  EXPECT_EQ(Factor("null", "null"), 1u);
  EXPECT_EQ(ShrinkOf(R"({"model":{"byte_fallback":true}})")->factor, 1u);
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

TEST(TextShrink, StepsThatShorten) {
  EXPECT_EQ(Factor(R"({"type":"NFC"})", "null"), 3u);
  EXPECT_EQ(Factor(R"({"type":"Replace","pattern":{"String":"abcde"},"content":"xx"})", "null"),
            3u);
  EXPECT_EQ(Factor(R"({"type":"Sequence","normalizers":[{"type":"NFC"},
                      {"type":"Replace","pattern":{"String":"ab"},"content":"x"}]})",
                   "null"),
            6u);
}

TEST(TextShrink, StepsThatMayDropAnything) {
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
  EXPECT_FALSE(ShrinkOf(""));
  EXPECT_FALSE(ShrinkOf("{"));
  EXPECT_FALSE(ShrinkOf("[]"));
}

TEST(TextShrink, BytesAreAloneWhenByteLevelTakesTheTextAsItIs) {
  const std::string byte_level = R"({"type":"ByteLevel"})";
  EXPECT_TRUE(Of("null", byte_level)->bytes_alone);
  EXPECT_FALSE(Of("null", R"({"type":"Metaspace"})")->bytes_alone);
  // What it makes of a character may have no token where the character's bytes have.
  EXPECT_FALSE(Of(R"({"type":"NFC"})", byte_level)->bytes_alone);
  EXPECT_FALSE(Of(R"({"type":"Prepend","prepend":"_"})", byte_level)->bytes_alone);
}

// 256 byte tokens, and "aaaa" the longest that is made of more than one character.
TEST(FewestTokens, HoldsForEveryText) {
  const auto tokenizer = *Tokenizer::FromGguf(SentencePieceVocabulary());
  EXPECT_EQ(tokenizer->FewestTokens(""), 0u);
  EXPECT_GT(tokenizer->FewestTokens(std::string(1 << 20, 'a')), (1u << 20) / 16);
  for (const char* piece :
       {"a", "hello", " ", "\u2581hello", "\u2581", "<s>", "</s>", "\xF0\x9F\xA6\x99", "\n"}) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      text += piece;
      EXPECT_LE(tokenizer->FewestTokens(text), tokenizer->Encode(text)->size()) << text;
    }
  }
}

// Tokens for ASCII and a few bytes more: the others are lost, and do not count.
TEST(FewestTokens, BytesWithoutATokenDoNotCount) {
  const auto tokenizer = *Tokenizer::FromGguf(ByteLevelVocabulary());
  EXPECT_GT(tokenizer->FewestTokens(std::string(1 << 20, 'z')), (1u << 20) / 16);
  EXPECT_EQ(tokenizer->FewestTokens(std::string(1 << 20, '\t')), 0u);
  for (const char* piece : {"a", "hello", " hello", "\t", "a\t", "\u00e9", "\u6f22", "\u00e9 a",
                            "<|end|>", "\xF0\x9F\xA6\x99!", "\n"}) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      text += piece;
      EXPECT_LE(tokenizer->FewestTokens(text), tokenizer->Encode(text)->size()) << text;
    }
  }
}

// One unknown token stands for any number of characters, whatever bytes they are made of.
TEST(FewestTokens, AVocabularyThatLosesCharactersPromisesNothing) {
  GgufVocabulary vocabulary = SentencePieceVocabulary();
  vocabulary.tokens[3 + 0xA6] = "<gone>";
  vocabulary.token_types[3 + 0xA6] = static_cast<int32_t>(GgufTokenType::kUnused);
  const auto tokenizer = *Tokenizer::FromGguf(vocabulary);
  EXPECT_EQ(tokenizer->FewestTokens(std::string(1 << 20, 'a')), 0u);
}

}  // namespace
}  // namespace lockstep
