#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

namespace lockstep {
namespace {

std::string DecodeWhole(std::string_view bytes) {
  std::string out;
  Utf8Decoder decoder;
  decoder.Push(bytes, &out);
  decoder.Finish(&out);
  return out;
}

constexpr char kBad[] = "\xEF\xBF\xBD";

// Rows of the Unicode Standard, version 15, tables 3-8 to 3-11, and neighbours.
TEST(Utf8, MaximalSubparts) {
  const std::string bad = kBad;
  const std::pair<std::string, std::string> cases[] = {
      {"A\xC3\xA9\xE6\xBC\xA2\xF0\x9F\xA6\x99", "A\xC3\xA9\xE6\xBC\xA2\xF0\x9F\xA6\x99"},
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", bad + bad + bad + bad + bad + bad + bad + bad + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", bad + bad + bad + bad + bad + bad + bad + bad + "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", bad + bad + bad + bad + bad + "A" + bad + bad + "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", bad + bad + bad + bad + "A"},
      {"\xA1", bad},
      {"\xF0\x9F\xA6", bad},
      {"a\xE6\xBC", "a" + bad},
      {"\xE6\xBC\xE6\xBC\xA2", bad + "\xE6\xBC\xA2"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(DecodeWhole(bytes), text);
}

TEST(Utf8, PiecesGiveTheSameAsTheWhole) {
  std::mt19937 random(7);
  // Bytes that begin and continue characters, so that broken ones are common.
  const std::string alphabet = "aZ \x80\xBF\xA0\x9F\xC2\xE0\xED\xE6\xF0\xF4\xFF\xC3";
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (size_t n = random() % 12; n > 0; --n) bytes += alphabet[random() % alphabet.size()];
    std::string text;
    Utf8Decoder decoder;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = 1 + random() % 3;
      decoder.Push(std::string_view(bytes).substr(at, size), &text);
      EXPECT_TRUE(IsValidUtf8(text));
      at += size;
    }
    decoder.Finish(&text);
    EXPECT_EQ(text, DecodeWhole(bytes));
    EXPECT_EQ(IsValidUtf8(bytes), text == bytes);
  }
}

}  // namespace
}  // namespace lockstep
