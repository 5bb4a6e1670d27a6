// Every small way to spoil a tokenizer.json: cut at each byte, each bit flipped, each number set to
// extremes, each value replaced by one of another type. Whatever comes out either is refused with a
// message or keeps the promises of a tokenizer.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "targets.h"
#include "text/tokenizer.h"

namespace lockstep::fuzz {
namespace {

constexpr const char* kSmall[] = {"byte_level.json", "byte_fallback.json", "unigram.json"};

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Small(const std::string& name) {
  return Read(std::string(LOCKSTEP_FUZZ_CORPUS) + "tokenizer/" + name);
}

void Attempt(const std::string& bytes) {
  // Exactly as large as the file, so that a sanitiser sees a read past its end.
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  TokenizerJson(exact.data(), exact.size());
}

bool Loads(const std::string& bytes) { return Tokenizer::FromTokenizerJson(bytes).ok(); }

TEST(TokenizerMutation, CutAnywhereIsRefused) {
  std::vector<std::string> files;
  for (const char* name : kSmall) files.push_back(Small(name));
  files.push_back(Read(std::string(LOCKSTEP_CHECKPOINTS) + "tiny-llama-mlx-8-g32/tokenizer.json"));
  for (const std::string& whole : files) {
    const auto loaded = Tokenizer::FromTokenizerJson(whole);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    const size_t closed = whole.find_last_of('}');
    for (size_t size = 0; size <= closed; ++size) {
      EXPECT_FALSE(Loads(whole.substr(0, size))) << size;
    }
  }
}

TEST(TokenizerMutation, EveryBitFlipped) {
  for (const char* name : kSmall) {
    std::string bytes = Small(name);
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        SCOPED_TRACE(std::string(name) + " byte " + std::to_string(i));
        bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
        Attempt(bytes);
        bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
      }
    }
  }
}

// The ends of the value that begins at `at`: a number, a word, a string or a bracket's content.
size_t EndOfValue(const std::string& text, size_t at) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ']' || text[i] == '}') --depth;
    const bool over = depth < 0 || (depth == 0 && text[i] == ',');
    if (over) return i;
  }
  return text.size();
}

TEST(TokenizerMutation, EveryValueReplaced) {
  const char* const values[] = {"null",       "true",
                                "-1",         "0",
                                "1e300",      "16777216",
                                "2147483647", "4294967295",
                                "4294967296", "18446744073709551615",
                                "\"\"",       "\"\xE2\x96\x81\"",
                                "[]",         "{}",
                                "[[]]",       "{\"type\":\"Sequence\"}"};
  for (const char* name : kSmall) {
    const std::string whole = Small(name);
    bool quoted = false;
    for (size_t i = 0; i + 1 < whole.size(); ++i) {
      if (whole[i] == '"') quoted = !quoted;
      if (quoted || (whole[i] != ':' && whole[i] != ',' && whole[i] != '[')) continue;
      const size_t end = EndOfValue(whole, i + 1);
      for (const char* value : values) {
        SCOPED_TRACE(std::string(name) + " byte " + std::to_string(i + 1) + " " + value);
        Attempt(whole.substr(0, i + 1) + value + whole.substr(end));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::fuzz
