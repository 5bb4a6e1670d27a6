#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep {
namespace {

TEST(StopMatcher, HoldsBackWhatMayBeginAStop) {
  StopMatcher matcher({"DEFGHIJ"});
  EXPECT_EQ(matcher.Push("ABC"), "ABC");
  EXPECT_EQ(matcher.Push("DEF"), "");
  EXPECT_EQ(matcher.Push("GX"), "DEFGX");
  EXPECT_EQ(matcher.Push("DEFG"), "");
  EXPECT_EQ(matcher.Push("HIJK"), "");
  ASSERT_TRUE(matcher.matched());
  EXPECT_EQ(matcher.matched_string(), "DEFGHIJ");
  EXPECT_EQ(matcher.Push("more"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcher, ShowsWhatComesBeforeTheMatch) {
  StopMatcher matcher({"7"});
  EXPECT_EQ(matcher.Push("5 6 7 8"), "5 6 ");
  EXPECT_TRUE(matcher.matched());
}

TEST(StopMatcher, ReleasesTheRestAtTheEnd) {
  StopMatcher matcher({"</s>"});
  EXPECT_EQ(matcher.Push("a</"), "a");
  EXPECT_EQ(matcher.Finish(), "</");
  EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcher, EmptyStringsAreIgnored) {
  StopMatcher none({"", ""});
  EXPECT_EQ(none.Push("abc"), "abc");
  EXPECT_FALSE(none.matched());
  StopMatcher one({"", "b"});
  EXPECT_EQ(one.Push("abc"), "a");
  EXPECT_EQ(one.matched_string(), "b");
}

TEST(StopMatcher, SuffixOfAFailedMatchCounts) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.Push("aaa"), "a");
  EXPECT_EQ(matcher.Push("b"), "");
  EXPECT_TRUE(matcher.matched());
}

// Against a search by hand: the match that ends first, of those the longest.
TEST(StopMatcher, EqualsASearchOfTheWholeText) {
  std::mt19937 random(11);
  auto word = [&](size_t longest) {
    std::string s;
    for (size_t n = 1 + random() % longest; n > 0; --n) s += static_cast<char>('a' + random() % 3);
    return s;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (size_t n = 1 + random() % 4; n > 0; --n) stops.push_back(word(5));
    const std::string text = word(30);
    std::string shown_expected = text;
    size_t stop_expected = stops.size();
    for (size_t end = 1; end <= text.size() && stop_expected == stops.size(); ++end) {
      for (size_t i = 0; i < stops.size(); ++i) {
        const bool longer =
            stop_expected == stops.size() || stops[i].size() > stops[stop_expected].size();
        if (longer && text.substr(0, end).ends_with(stops[i])) {
          stop_expected = i;
          shown_expected = text.substr(0, end - stops[i].size());
        }
      }
    }
    StopMatcher matcher{StopStrings(stops)};
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 4;
      shown += matcher.Push(std::string_view(text).substr(at, size));
      EXPECT_TRUE(shown_expected.starts_with(shown));
      at += size;
    }
    shown += matcher.Finish();
    EXPECT_EQ(shown, shown_expected);
    ASSERT_EQ(matcher.matched(), stop_expected < stops.size());
    if (matcher.matched()) {
      EXPECT_EQ(matcher.matched_string(), stops[stop_expected]);
    }
  }
}

// The rows of a request hold one automaton together, and none of them changes it.
TEST(StopStrings, CopiesShareOneAutomaton) {
  const StopStrings stops({"abc", "", "bd"});
  EXPECT_EQ(stops.strings(), std::vector<std::string>({"abc", "bd"}));
  const StopStrings copy = stops;
  EXPECT_EQ(&copy.strings(), &stops.strings());
  StopMatcher first(stops);
  StopMatcher second(copy);
  EXPECT_EQ(first.Push("xab"), "x");
  EXPECT_EQ(second.Push("xabd"), "xa");
  EXPECT_EQ(second.matched_string(), "bd");
  EXPECT_EQ(first.Push("c"), "");
  EXPECT_EQ(first.matched_string(), "abc");
  EXPECT_TRUE(StopStrings({"", ""}).empty());
  EXPECT_TRUE(StopStrings().strings().empty());
}

TEST(StopMatcher, LinearOnHostileInput) {
  // Every byte could begin the stop string; a search anew at each would take 10^10 steps.
  const std::string stop(100000, 'a');
  StopMatcher matcher(StopStrings({stop.substr(0, 2000) + "b"}));
  const std::string text(1 << 20, 'a');
  size_t shown = 0;
  for (size_t at = 0; at < text.size(); at += 16) shown += matcher.Push(text.substr(at, 16)).size();
  EXPECT_EQ(shown, text.size() - 2000);
}

}  // namespace
}  // namespace lockstep
