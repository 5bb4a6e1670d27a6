#include "weights/printable.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using std::string_view_literals::operator""sv;

TEST(Printable, KeepsTextAndEscapesTheRest) {
  EXPECT_EQ(Printable("plain é 語 🦜"), "plain é 語 🦜");
  EXPECT_EQ(Printable("a\nb\tc\\d\x1b[31m\x7f"), "a\\nb\\tc\\\\d\\x1b[31m\\x7f");
  EXPECT_EQ(Printable("\0"sv), "\\x00");
  EXPECT_EQ(Printable("\xff\xc3"), "\\xff\\xc3");           // no UTF-8, cut-off UTF-8
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b");           // a control character of two bytes
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(Printable("\xf0\x80\x80\xaf"), "\\xf0\\x80\\x80\\xaf");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // past U+10FFFF
  EXPECT_EQ(Printable("\xf4\x8f\xbf\xbf\xed\x9f\xbf\xc2\xa0"),
            "\xf4\x8f\xbf\xbf\xed\x9f\xbf\xc2\xa0");
}

TEST(Printable, ShortensBetweenCharacters) {
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("abc", 3), "abc");
  EXPECT_EQ(Printable("語語語", 4), "語語...");
}

}  // namespace
}  // namespace lockstep
