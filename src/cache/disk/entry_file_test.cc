#include "cache/disk/entry_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr int64_t kBlockBytes = 40;

// The file of 40 bytes 0, 1, ... for group 2 of model "model" after tokens 1, 2, 3, -4.
class EntryFile : public ::testing::Test {
 protected:
  EntryFile() : path_(::testing::TempDir() + "entry_file_test"), identity_(DigestOf("model")) {
    const ChainDigest parent = ChainRoot("model", "");
    entry_.key = {ChainNext(parent, std::vector<TokenId>{1, 2, 3, -4}), 2};
    entry_.parent = parent;
    entry_.bytes = PrefixBytes(kBlockBytes);
    for (int i = 0; i < kBlockBytes; ++i) entry_.bytes.span()[i] = static_cast<std::byte>(i);
    const EntryHeader header = HeaderOf(entry_, identity_);
    const EntrySum sum = SumOf(header, entry_.bytes.span());
    bytes_.assign(header.begin(), header.end());
    bytes_.insert(bytes_.end(), entry_.bytes.span().begin(), entry_.bytes.span().end());
    bytes_.insert(bytes_.end(), sum.begin(), sum.end());
  }
  ~EntryFile() override { std::filesystem::remove(path_); }

  Result<PrefixBytes> ReadBack(const std::vector<std::byte>& bytes) {
    std::filesystem::remove(path_);
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.close();
    return ReadEntryFile(path_, entry_.key, identity_, kBlockBytes);
  }

  const std::string path_;
  ChainDigest identity_;
  PrefixEntry entry_;
  std::vector<std::byte> bytes_;
};

TEST_F(EntryFile, IsLaidOutAsDocumented) {
  // The sum and the name as Python's xxhash and hashlib have them.
  ASSERT_EQ(bytes_.size(), 176u);
  std::string sum;
  for (size_t i = 160; i < 176; ++i) sum += fmt::format("{:02x}", static_cast<int>(bytes_[i]));
  EXPECT_EQ(sum, "89481c1a684d01ae918d5c38944ea07b");
  const EntryName name{NameOf(entry_.key.digest), NameOf(entry_.parent), 2};
  EXPECT_EQ(FileNameOf(name),
            "d79f50351468b84c8a170c7d085bf977-f0bc97f526215148905dcb4550f8880f-2.lsprefix");
  EXPECT_EQ(ParseFileName(FileNameOf(name)), name);
}

TEST_F(EntryFile, GivesItsBlocksBack) {
  const auto blocks = ReadBack(bytes_);
  ASSERT_TRUE(blocks.ok()) << blocks.status().ToString();
  EXPECT_TRUE(std::ranges::equal(blocks->span(), entry_.bytes.span()));
}

TEST_F(EntryFile, EveryFlippedBitShows) {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> flipped = bytes_;
      flipped[i] ^= static_cast<std::byte>(1 << bit);
      EXPECT_EQ(ReadBack(flipped).status().code(), StatusCode::kDataLoss) << i << "." << bit;
    }
  }
}

TEST_F(EntryFile, EveryOtherLengthShows) {
  for (size_t length = 0; length < bytes_.size(); ++length) {
    const std::vector<std::byte> torn(bytes_.begin(), bytes_.begin() + length);
    EXPECT_EQ(ReadBack(torn).status().code(), StatusCode::kDataLoss) << length;
    // As a file system may leave it: of full length, with zeros where nothing was written.
    std::vector<std::byte> holed = torn;
    holed.resize(bytes_.size());
    if (holed == bytes_) continue;
    EXPECT_EQ(ReadBack(holed).status().code(), StatusCode::kDataLoss) << length;
  }
  std::vector<std::byte> longer = bytes_;
  longer.push_back(std::byte{0});
  EXPECT_EQ(ReadBack(longer).status().code(), StatusCode::kDataLoss);
}

TEST_F(EntryFile, WholeFilesOfOthersShow) {
  ASSERT_TRUE(ReadBack(bytes_).ok());
  const auto code = [&](const PrefixKey& key, const ChainDigest& identity) {
    return ReadEntryFile(path_, key, identity, kBlockBytes).status().code();
  };
  EXPECT_EQ(code({entry_.key.digest, 1}, identity_), StatusCode::kDataLoss);
  EXPECT_EQ(code({entry_.parent, 2}, identity_), StatusCode::kDataLoss);
  EXPECT_EQ(code(entry_.key, DigestOf("another model")), StatusCode::kDataLoss);
  // Another version with the right sum.
  EntryHeader header = HeaderOf(entry_, identity_);
  header[8] = std::byte{kEntryVersion + 1};
  const EntrySum sum = SumOf(header, entry_.bytes.span());
  std::vector<std::byte> other = bytes_;
  std::memcpy(other.data(), header.data(), header.size());
  std::memcpy(other.data() + other.size() - sum.size(), sum.data(), sum.size());
  EXPECT_EQ(ReadBack(other).status().code(), StatusCode::kDataLoss);
}

TEST_F(EntryFile, WhatIsNoFileShows) {
  std::filesystem::remove(path_);
  const auto read = [&] { return ReadEntryFile(path_, entry_.key, identity_, kBlockBytes); };
  EXPECT_EQ(read().status().code(), StatusCode::kNotFound);
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(read().ok());
}

TEST(EntryName, OtherNamesAreNotOurs) {
  const EntryName name{{1, 2}, {3, 4}, 10};
  const std::string good = FileNameOf(name);
  ASSERT_TRUE(ParseFileName(good).has_value());
  for (const std::string& bad :
       {std::string(), std::string("lock"), std::string(".lsprefix"), good + ".tmp", "x" + good,
        good.substr(1), "A" + good.substr(1), std::string(good).replace(32, 1, "+"),
        std::string(good).replace(66, 1, "-"), std::string(good).replace(66, 1, "0a")}) {
    EXPECT_FALSE(ParseFileName(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace lockstep
