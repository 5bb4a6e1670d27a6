// Token ids of vocabulary-only GGUF files against the vectors published beside them. The files are
// not part of the project: tools/fetch_llama_cpp_source.py puts them in the cache, and a machine
// without them fails here.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "apps/common/gguf_vocabulary_from_file.h"
#include "reference_files.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "weights/gguf.h"

namespace lockstep {
namespace {

// Texts stand between separator lines; ids are numbers, a line a text.
std::vector<std::string> Texts(const std::string& content) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  size_t begin = 0;
  for (size_t end; (end = content.find(separator, begin)) != std::string::npos;) {
    texts.push_back(content.substr(begin, end - begin));
    begin = end + separator.size();
  }
  if (begin < content.size()) texts.push_back(content.substr(begin));
  return texts;
}

std::vector<std::vector<TokenId>> IdLines(const std::string& content) {
  std::vector<std::vector<TokenId>> lines;
  std::istringstream stream(content);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream numbers(line);
    std::vector<TokenId>& ids = lines.emplace_back();
    for (TokenId id; numbers >> id;) ids.push_back(id);
  }
  return lines;
}

class VocabularyVectors : public testing::TestWithParam<const char*> {};

TEST_P(VocabularyVectors, IdsAreEqual) {
  const std::string base = LlamaCppModels() + "/ggml-vocab-" + GetParam() + ".gguf";
  auto file = GgufFile::Open(base);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  auto vocabulary = GgufVocabularyFromMetadata((*file)->metadata());
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().ToString();
  auto tokenizer = Tokenizer::FromGguf(*vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();

  const std::vector<std::string> texts = Texts(ReadReference(base + ".inp"));
  const std::vector<std::vector<TokenId>> expected = IdLines(ReadReference(base + ".out"));
  ASSERT_GT(texts.size(), 30u);
  ASSERT_EQ(texts.size(), expected.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    auto ids = (*tokenizer)->Encode(texts[i], {.add_special = false, .parse_special = false});
    ASSERT_TRUE(ids.ok()) << ids.status().ToString();
    EXPECT_EQ(*ids, expected[i]) << "text " << i << ": " << testing::PrintToString(texts[i]);
    Detokenizer detokenizer(*tokenizer);
    std::string text;
    for (const TokenId id : *ids) text += detokenizer.Push(id);
    text += detokenizer.Finish();
    EXPECT_EQ(text, (*tokenizer)->Decode(*ids));
    EXPECT_EQ(text, texts[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, VocabularyVectors,
                         testing::Values("command-r", "deepseek-coder", "deepseek-llm", "falcon",
                                         "gemma-4", "gpt-2", "llama-bpe", "llama-spm", "mpt",
                                         "phi-3", "qwen2", "qwen35", "refact", "starcoder"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace lockstep
