#include "apps/cli/sampling_options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace lockstep {
namespace {

TEST(ParseSeed, ExactlyWhatFits) {
  EXPECT_EQ(ParseSeed("0"), 0u);
  EXPECT_EQ(ParseSeed("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseSeed("-1"), UINT64_MAX);
  EXPECT_EQ(ParseSeed("-9223372036854775808"), uint64_t{1} << 63);
  for (const char* wrong : {"18446744073709551616", "-9223372036854775809", "1e3", "", "-", "1 ",
                            " 1", "+1", "0x1", "99999999999999999999999"}) {
    EXPECT_EQ(ParseSeed(wrong), std::nullopt) << wrong;
  }
}

bool Accepts(std::vector<std::string> args) {
  CLI::App app;
  SamplingOptions options;
  AddSamplingOptions(&app, &options);
  std::reverse(args.begin(), args.end());
  try {
    app.parse(args);
    return true;
  } catch (const CLI::ParseError&) {
    return false;
  }
}

TEST(SamplingOptions, OnlyNumbersWithinTheirRanges) {
  for (const char* flag : {"--temperature", "--top-p", "--min-p", "--repetition-penalty"}) {
    EXPECT_TRUE(Accepts({flag, "1"})) << flag;
    for (const char* wrong : {"nan", "NaN", "-nan", "inf", "-inf", "101", "-0.1", "x", ""}) {
      EXPECT_FALSE(Accepts({flag, wrong})) << flag << " " << wrong;
    }
  }
  EXPECT_FALSE(Accepts({"--repetition-penalty", "0.001"}));
  EXPECT_TRUE(Accepts({"--seed", "5"}));
  EXPECT_FALSE(Accepts({"--seed", "18446744073709551616"}));
}

}  // namespace
}  // namespace lockstep
