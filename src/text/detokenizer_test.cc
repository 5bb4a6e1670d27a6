#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/test_vocabularies.h"

namespace lockstep {
namespace {

std::shared_ptr<const Tokenizer> SentencePiece() {
  return *Tokenizer::FromGguf(SentencePieceVocabulary());
}

TEST(Detokenizer, HoldsACharacterUntilItIsWhole) {
  Detokenizer detokenizer(SentencePiece());
  EXPECT_EQ(detokenizer.Push(3 + 0xF0), "");
  EXPECT_EQ(detokenizer.Push(3 + 0x9F), "");
  EXPECT_EQ(detokenizer.Push(3 + 0xA6), "");
  EXPECT_EQ(detokenizer.Push(3 + 0x99), "\U0001f999");
  EXPECT_EQ(detokenizer.Finish(), "");
}

TEST(Detokenizer, ALoneContinuationByteIsReplacedAndTheTextGoesOn) {
  Detokenizer detokenizer(SentencePiece());
  EXPECT_EQ(detokenizer.Push(3 + 0xA1), "\uFFFD");
  EXPECT_EQ(detokenizer.Push(3 + 'a'), "a");
  EXPECT_EQ(detokenizer.Push(3 + 0xE6), "");
  EXPECT_EQ(detokenizer.Finish(), "\uFFFD");
}

TEST(Detokenizer, EqualsTheDecodingOfTheWhole) {
  std::mt19937 random(5);
  for (const auto& tokenizer : {SentencePiece(), *Tokenizer::FromGguf(ByteLevelVocabulary())}) {
    for (int round = 0; round < 3000; ++round) {
      DecodeOptions options{.skip_special = random() % 2 == 0, .continuation = random() % 2 == 0};
      std::vector<TokenId> ids;
      for (size_t n = random() % 10; n > 0; --n) {
        ids.push_back(static_cast<TokenId>(random() % (tokenizer->vocab_size() + 2)) - 1);
      }
      Detokenizer detokenizer(tokenizer, options);
      std::string text;
      for (const TokenId id : ids) {
        text += detokenizer.Push(id);
        ASSERT_TRUE(IsValidUtf8(text));
      }
      text += detokenizer.Finish();
      ASSERT_EQ(text, tokenizer->Decode(ids, options));
    }
  }
}

}  // namespace
}  // namespace lockstep
