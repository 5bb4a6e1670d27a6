#include "apps/cli/token_list.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TEST(TokenList, CommasSpaceOrBothOrAJsonList) {
  const std::vector<TokenId> ids = {1, 20, 3};
  for (const char* text :
       {"1,20,3", "1 20 3", "1\n20\t3\n", " 1 , 20,3 ", "[1,20,3]", " [ 1, 20,\n3 ]\n"}) {
    const auto read = ParseTokenList(text, "here");
    ASSERT_TRUE(read.ok()) << text << ": " << read.status().ToString();
    EXPECT_EQ(*read, ids) << text;
  }
}

TEST(TokenList, WhatIsWrongIsNamedWithItsPlace) {
  const std::pair<const char*, const char*> faults[] = {
      {"1,,2", "byte 2"},  {",1", "byte 0"},    {"1,", "byte 2"},   {"1,-2", "byte 2"},
      {"1.5", "byte 1"},   {"a", "byte 0"},     {"[1,2", "byte 4"}, {"1]", "byte 1"},
      {"[1 2]", "byte 3"}, {"[1,]", "byte 3"},  {"[1]2", "byte 3"}, {"[[1]]", "byte 1"},
      {"", "no token"},    {" \n", "no token"}, {"[]", "no token"}, {"99999999999", "byte 0"},
  };
  for (const auto& [text, place] : faults) {
    const auto read = ParseTokenList(text, "--tokens");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(read.status().message().starts_with("--tokens: ")) << read.status().message();
    EXPECT_NE(read.status().message().find(place), std::string::npos)
        << text << ": " << read.status().message();
  }
}

TEST(TokenList, AFileThatCannotBeReadIsNamed) {
  const std::string folder = testing::TempDir();
  const Status of_folder = ReadTokenList(folder).status();
  EXPECT_EQ(of_folder.message(), folder + " is a folder, not a file of token ids");
  const Status missing = ReadTokenList(folder + "/no-such-file").status();
  EXPECT_EQ(missing.message(), "cannot read " + folder + "/no-such-file");
}

}  // namespace
}  // namespace lockstep
