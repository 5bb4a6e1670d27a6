// Expected values by Python's hashlib.
#include "cache/chain_digest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

std::string Hex(const ChainDigest& digest) {
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", static_cast<int>(byte));
  return text;
}

TEST(ChainDigest, IsASha256OfWhatStandsBefore) {
  const ChainDigest root = ChainRoot("llama", "");
  EXPECT_EQ(Hex(root), "fda3f4df3fb34b6fb7809ac2c089fb58cda3b7203ac706bccd40fc93a51f99bd");
  EXPECT_EQ(Hex(ChainNext(root, std::vector<TokenId>{1, 2, 3, -4})),
            "703a8b7aed91049b1510f3e0083d82964c0598ac6789a79698c220e9f112fb47");
  EXPECT_EQ(Hex(ChainRoot("llama", "salt")),
            "1db03af9e299c32881584f91c3a0824ec6e461ac5b044171288ca0317821ea81");
}

TEST(ChainDigest, NoTextPassesForAnother) {
  EXPECT_NE(ChainRoot("ab", "c"), ChainRoot("a", "bc"));
  EXPECT_NE(ChainRoot("ab", ""), ChainRoot("", "ab"));
}

}  // namespace
}  // namespace lockstep
