#include "platform/atomic_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() {
    std::string pattern = testing::TempDir() + "atomic_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = (folder_ / "file").string();
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  static std::span<const std::byte> Bytes(const char* text) {
    return {reinterpret_cast<const std::byte*>(text), std::strlen(text)};
  }
  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int Files() const {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) files += entry.exists();
    return files;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(AtomicFileTest, AppearsWhenCommitted) {
  auto file = AtomicFile::Create(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->WriteAt(4, Bytes("tail")).ok());
  ASSERT_TRUE(file->WriteAt(0, Bytes("head")).ok());
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Content(), "headtail");
  EXPECT_EQ(Files(), 1);
}

TEST_F(AtomicFileTest, LeavesNothingWithoutCommit) {
  {
    auto file = AtomicFile::Create(path_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->WriteAt(0, Bytes("half")).ok());
  }
  EXPECT_EQ(Files(), 0);
}

TEST_F(AtomicFileTest, ReplacesAnOlderFileAndALeftover) {
  std::ofstream(path_) << "old and long";
  std::ofstream(path_ + ".tmp") << "left by a process that was killed";
  auto file = AtomicFile::Create(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->WriteAt(0, Bytes("new")).ok());
  EXPECT_EQ(Content(), "old and long");
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Content(), "new");
  EXPECT_EQ(Files(), 1);
}

TEST_F(AtomicFileTest, OneWriterAtATime) {
  std::optional<AtomicFile> first;
  {
    auto created = AtomicFile::Create(path_);
    ASSERT_TRUE(created.ok());
    first.emplace(std::move(*created));
  }
  const auto second = AtomicFile::Create(path_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(first->WriteAt(0, Bytes("first")).ok());
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(Content(), "first");
}

TEST_F(AtomicFileTest, NamesTheMissingFolder) {
  const auto file = AtomicFile::Create((folder_ / "none" / "file").string());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kNotFound);
  EXPECT_NE(file.status().message().find("none/file"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
