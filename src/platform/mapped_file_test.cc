#include "platform/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>

namespace lockstep {
namespace {

static_assert(!std::is_copy_constructible_v<MappedFile>);
static_assert(std::is_nothrow_move_constructible_v<MappedFile>);

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() {
    std::string pattern = testing::TempDir() + "mapped_file_XXXXXX";
    dir_ = mkdtemp(pattern.data());
  }
  ~MappedFileTest() override { std::filesystem::remove_all(dir_); }

  std::string Path(const std::string& name) const { return (dir_ / name).string(); }
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }
  static std::string Text(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }

  std::filesystem::path dir_;
};

TEST_F(MappedFileTest, HoldsTheBytesOfTheFile) {
  std::string content(10000, 'x');
  content[0] = '\0';
  content.back() = 'z';
  auto file = MappedFile::Open(Write("a", content));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->size(), content.size());
  EXPECT_EQ(Text(*file), content);
}

TEST_F(MappedFileTest, AdviceNeverChangesTheBytes) {
  const std::string content(3 * 4096 + 5, 'q');
  auto file = MappedFile::Open(Write("a", content));
  ASSERT_TRUE(file.ok());
  for (const auto advice :
       {MappedFile::Advice::kNormal, MappedFile::Advice::kSequential, MappedFile::Advice::kRandom,
        MappedFile::Advice::kWillNeed, MappedFile::Advice::kDontNeed}) {
    file->Advise(advice);
    file->Advise(advice, 5000, 1);
    file->Advise(advice, 5000, ~uint64_t{0});
    file->Advise(advice, ~uint64_t{0}, ~uint64_t{0});
    EXPECT_EQ(Text(*file), content);
  }
}

TEST_F(MappedFileTest, MovesKeepTheBytesWhereTheyAre) {
  auto first = MappedFile::Open(Write("a", "first"));
  auto second = MappedFile::Open(Write("b", "second"));
  ASSERT_TRUE(first.ok() && second.ok());
  const std::byte* address = first->bytes().data();
  MappedFile moved = std::move(*first);
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(first->size(), 0u);
  moved = std::move(*second);
  EXPECT_EQ(Text(moved), "second");
  MappedFile& self = moved;
  moved = std::move(self);
  EXPECT_EQ(Text(moved), "second");
}

TEST_F(MappedFileTest, OutlivesTheNameOfTheFile) {
  const std::string path = Write("a", "still here");
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path);
  EXPECT_EQ(Text(*file), "still here");
}

TEST_F(MappedFileTest, OpensAnyPathTheSystemDoes) {
  std::filesystem::create_directory(dir_ / "モデル dir");
  const std::string path = Write("モデル dir/é m.gguf", "data");
  std::filesystem::create_symlink(path, dir_ / "link");
  std::filesystem::create_directory_symlink(dir_ / "モデル dir", dir_ / "dirlink");
  for (const std::string& name : {path, Path("link"), Path("dirlink/é m.gguf")}) {
    auto file = MappedFile::Open(name);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_EQ(Text(*file), "data");
  }
}

TEST_F(MappedFileTest, SaysWhyAFileCannotBeOpened) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink(dir_ / "loop", dir_ / "loop");
  const std::string plain = Write("plain", "x");
  const struct {
    std::string path;
    StatusCode code;
    std::string says;
  } cases[] = {
      {Path("missing"), StatusCode::kNotFound, "No such file"},
      {plain + "/below", StatusCode::kNotFound, "Not a directory"},
      {"", StatusCode::kNotFound, "No such file"},
      {dir_.string(), StatusCode::kInvalidArgument, "is a directory"},
      {Path("pipe"), StatusCode::kInvalidArgument, "not a regular file"},
      {"/dev/null", StatusCode::kInvalidArgument, "not a regular file"},
      {Write("empty", ""), StatusCode::kDataLoss, "is empty"},
      {Path("loop"), StatusCode::kIoError, "symbolic links"},
      {plain + std::string(1, '\0') + "tail", StatusCode::kInvalidArgument, "zero byte"},
      {Path(std::string(5000, 'n')), StatusCode::kIoError, "too long"},
  };
  for (const auto& c : cases) {
    const auto file = MappedFile::Open(c.path);
    ASSERT_FALSE(file.ok()) << c.path;
    EXPECT_EQ(file.status().code(), c.code) << file.status().ToString();
    EXPECT_NE(file.status().message().find(c.says), std::string::npos) << file.status().ToString();
    if (c.says != "zero byte") {
      EXPECT_NE(file.status().message().find(c.path), std::string::npos);
    }
  }
}

TEST_F(MappedFileTest, SaysWhenPermissionIsMissing) {
  const std::string path = Write("secret", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  // Root may read everything, so the test asks as nobody when it runs as root.
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const auto file = MappedFile::Open(path);
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(file.status().message(), path + ": Permission denied");
}

}  // namespace
}  // namespace lockstep
