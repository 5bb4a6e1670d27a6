// Token ids and texts against those of the Python `tokenizers` library, for SmolLM2's GGUF file and
// for small tokenizer.json files of each kind (make_tokenizer_goldens.py).
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/common/gguf_vocabulary_from_file.h"
#include "reference_files.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "weights/gguf.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

const Json& Goldens() {
  static const Json goldens = Json::parse(ReadReference(GoldenPath("tokenizers.json")));
  return goldens;
}

Result<std::shared_ptr<const Tokenizer>> MakeTokenizer(const Json& golden) {
  if (golden.contains("tokenizer")) {
    return Tokenizer::FromTokenizerJson(golden["tokenizer"].dump());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, GgufFile::Open(SmolLm2Path()));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto vocabulary, GgufVocabularyFromMetadata(file->metadata()));
  return Tokenizer::FromGguf(vocabulary);
}

class TokenizerGoldens : public testing::TestWithParam<size_t> {};

TEST_P(TokenizerGoldens, AreEqual) {
  const Json& golden = Goldens()["cases"][GetParam()];
  SCOPED_TRACE(golden["name"]);
  const auto tokenizer = MakeTokenizer(golden);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  for (const Json& row : golden["rows"]) {
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(*(*tokenizer)->Encode(text, {.add_special = false}), ids) << row["text"];
    if (row.contains("plain")) {
      EXPECT_EQ(*(*tokenizer)->Encode(text, {.add_special = false, .parse_special = false}),
                row["plain"].get<std::vector<TokenId>>())
          << row["text"];
    }
    // A BOS that the text brings itself is not doubled, unlike there.
    if (row.contains("with_special") && !text.starts_with("<|endoftext|>")) {
      EXPECT_EQ(*(*tokenizer)->Encode(text), row["with_special"].get<std::vector<TokenId>>())
          << row["text"];
    }
    const DecodeOptions shown{.skip_special = false};
    EXPECT_EQ((*tokenizer)->Decode(ids, shown), row["decoded"].get<std::string>()) << row["text"];
    Detokenizer detokenizer(*tokenizer, shown);
    std::string streamed;
    for (const TokenId id : ids) streamed += detokenizer.Push(id);
    streamed += detokenizer.Finish();
    EXPECT_EQ(streamed, row["decoded"].get<std::string>()) << row["text"];
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, TokenizerGoldens, testing::Range<size_t>(0, 5));

TEST(TokenizerGoldens, AllCasesRun) { EXPECT_EQ(Goldens()["cases"].size(), 5u); }

}  // namespace
}  // namespace lockstep
