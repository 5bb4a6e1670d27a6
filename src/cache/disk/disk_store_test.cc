#include "cache/disk/disk_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kBytes = 100;
constexpr int64_t kFileBytes = EntryFileBytes(kBytes);

// What the store wakes its caller for.
class Bell {
 public:
  void Ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

class DiskStoreTest : public ::testing::Test {
 protected:
  DiskStoreTest() : folder_(::testing::TempDir() + "disk_store_test") {
    SetLogLevel(LogLevel::kOff);
    fs::remove_all(folder_);
    ChainDigest digest = ChainRoot("model", "");
    digests_.push_back(digest);
    for (TokenId n = 0; n < 20; ++n) {
      digest = ChainNext(digest, std::vector<TokenId>{n});
      digests_.push_back(digest);
    }
  }
  ~DiskStoreTest() override {
    store_.reset();
    fs::remove_all(folder_);
  }

  void Open(DiskStoreOptions options = {.bytes_limit = 1 << 20},
            const std::string& identity = "model") {
    store_.reset();
    auto folder = PrefixFolder::Open(folder_);
    ASSERT_TRUE(folder.ok()) << folder.status().ToString();
    store_ = MakeDiskStore(std::move(*folder), identity, std::move(options)).value();
    store_->SetWake([this] { bell_.Ring(); });
  }
  // Span n (from 1) of the chain, filled with a byte that is its own.
  PrefixEntry Entry(size_t n, int32_t group = 0) {
    PrefixEntry entry;
    entry.key = {digests_[n], group};
    entry.parent = digests_[n - 1];
    entry.bytes = PrefixBytes(kBytes);
    std::ranges::fill(entry.bytes.span(), static_cast<std::byte>(n + 100 * group));
    return entry;
  }
  Status Flush() { return store_->Flush(Clock::now() + std::chrono::minutes(5), nullptr); }
  void Write(size_t first, size_t last) {
    for (size_t n = first; n <= last; ++n) store_->Write(Entry(n));
    ASSERT_TRUE(Flush().ok());
  }
  bool Has(size_t n, int32_t group = 0) {
    return (store_->Find(std::span(digests_).subspan(n, 1), false)[0] >> group & 1) != 0;
  }
  PrefixRead Next() {
    while (true) {
      if (auto read = store_->NextRead()) return std::move(*read);
      bell_.Wait();
    }
  }
  // Whether span n comes back as it was.
  bool ComesBack(size_t n, int32_t group = 0) {
    store_->Read(++ticket_, {{digests_[n], group}}, {kBytes});
    const PrefixRead read = Next();
    EXPECT_EQ(read.ticket, ticket_);
    return read.bytes && std::ranges::equal(read.bytes->span(), Entry(n, group).bytes.span());
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& file : fs::directory_iterator(folder_)) {
      if (file.path().filename() != "lock") files.push_back(file.path().string());
    }
    return files;
  }
  std::string FileOf(size_t n, int32_t group = 0) {
    return folder_ + "/" + FileNameOf({NameOf(digests_[n]), NameOf(digests_[n - 1]), group});
  }

  const std::string folder_;
  std::vector<ChainDigest> digests_;
  Bell bell_;
  std::unique_ptr<PrefixStore> store_;
  uint64_t ticket_ = 0;
};

TEST_F(DiskStoreTest, EntriesSurviveARestart) {
  Open();
  Write(1, 5);
  store_->Write(Entry(5, 3));
  ASSERT_TRUE(Flush().ok());
  for (int restart = 0; restart < 2; ++restart) {
    for (size_t n = 1; n <= 5; ++n) EXPECT_TRUE(Has(n) && ComesBack(n)) << n;
    EXPECT_TRUE(Has(5, 3) && ComesBack(5, 3));
    EXPECT_FALSE(Has(6) || Has(4, 3));
    EXPECT_FALSE(ComesBack(6));
    EXPECT_EQ(store_->stats().entries, 6);
    EXPECT_EQ(store_->stats().bytes, 6 * kFileBytes);
    EXPECT_EQ(store_->stats().corrupt, 0u);
    Open();
  }
}

TEST_F(DiskStoreTest, AnotherModelFindsNothingAndHarmsNothing) {
  Open();
  Write(1, 3);
  Open({.bytes_limit = 1 << 20}, "another");
  EXPECT_EQ(store_->stats().entries, 3);
  // Names are of the model too; even under the same one its files are no good.
  EXPECT_FALSE(ComesBack(1));
  EXPECT_EQ(store_->stats().corrupt, 1u);
  Open();
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(ComesBack(2) && ComesBack(3));
}

TEST_F(DiskStoreTest, WhatIsNotWholeIsGoneOnceItIsRead) {
  Open();
  Write(1, 4);
  fs::resize_file(FileOf(1), kFileBytes - 1);
  fs::resize_file(FileOf(2), 0);
  {
    std::fstream file(FileOf(3), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(150);
    file.put('x');
  }
  fs::remove(FileOf(4));
  for (size_t n = 1; n <= 4; ++n) {
    EXPECT_FALSE(ComesBack(n)) << n;
    EXPECT_FALSE(Has(n)) << n;
  }
  EXPECT_EQ(store_->stats().corrupt, 3u);
  EXPECT_TRUE(Files().empty());
  // And may be written again.
  Write(1, 4);
  for (size_t n = 1; n <= 4; ++n) EXPECT_TRUE(ComesBack(n)) << n;
}

TEST_F(DiskStoreTest, FilesOfOthersAreLeftAloneAndUnfinishedOnesRemoved) {
  Open();
  Write(1, 1);
  std::ofstream(folder_ + "/notes.txt") << "mine";
  std::ofstream(folder_ + "/x.lsprefix") << "not a name of ours";
  std::ofstream(FileOf(2) + ".tmp") << "torn";
  fs::create_directory(FileOf(3));
  Open();
  EXPECT_EQ(store_->stats().entries, 1);
  EXPECT_TRUE(fs::exists(folder_ + "/notes.txt") && fs::exists(folder_ + "/x.lsprefix"));
  EXPECT_FALSE(fs::exists(FileOf(2) + ".tmp"));
  Write(2, 2);
  EXPECT_TRUE(ComesBack(2));
}

TEST_F(DiskStoreTest, TheLimitIsKeptAndEndsOfPrefixesGoFirst) {
  Open({.bytes_limit = 4 * kFileBytes + 10});
  Write(1, 3);
  ChainDigest digest = ChainRoot("model", "other");
  for (ChainDigest& next : digests_) {
    next = digest;
    digest = ChainNext(digest, std::vector<TokenId>{1});
  }
  Write(1, 3);
  EXPECT_EQ(store_->stats().bytes, 4 * kFileBytes);
  EXPECT_EQ(Files().size(), 4u);
  EXPECT_EQ(store_->stats().evictions, 2u);
  for (size_t n = 1; n <= 3; ++n) EXPECT_TRUE(Has(n)) << n;
  // A prefix that is larger than the limit alone is kept from its beginning.
  for (size_t n = 4; n <= 6; ++n) store_->Write(Entry(n));
  EXPECT_EQ(Flush().code(), StatusCode::kIoError);
  EXPECT_EQ(Files().size(), 4u);
  for (size_t n = 1; n <= 4; ++n) EXPECT_TRUE(Has(n)) << n;
  // A smaller limit at the next start.
  Open({.bytes_limit = 2 * kFileBytes});
  EXPECT_EQ(Files().size(), 2u);
  EXPECT_TRUE(Has(1) && Has(2));
  // What is larger than all of it.
  Open({.bytes_limit = kFileBytes - 1});
  EXPECT_TRUE(Files().empty());
  store_->Write(Entry(1));
  EXPECT_EQ(Flush().code(), StatusCode::kIoError);
  EXPECT_TRUE(Files().empty());
}

TEST_F(DiskStoreTest, WhatWasUsedStaysAfterARestartToo) {
  Open();
  for (const int32_t group : {0, 1, 2}) {
    PrefixEntry entry = Entry(1, group);
    entry.key.digest = digests_[static_cast<size_t>(group) + 1];
    entry.parent = digests_[0];
    store_->Write(std::move(entry));
  }
  ASSERT_TRUE(Flush().ok());
  // Clocks of file systems are coarse: the others were last used long ago.
  for (const std::string& file : Files()) {
    fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1));
  }
  store_->Read(++ticket_, {{digests_[2], 1}}, {kBytes});
  ASSERT_TRUE(Next().bytes.has_value());
  Open({.bytes_limit = kFileBytes});
  EXPECT_FALSE(Has(1, 0) || Has(3, 2));
  EXPECT_TRUE(Has(2, 1));
}

TEST_F(DiskStoreTest, RemovesAPrefixWithAllThatGoesOnFromIt) {
  Open();
  Write(1, 5);
  store_->Remove(digests_[3]);
  ASSERT_TRUE(Flush().ok());
  EXPECT_TRUE(Has(2));
  for (size_t n = 3; n <= 5; ++n) EXPECT_FALSE(Has(n)) << n;
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(DiskStoreTest, AFailedWriteIsToldOnceAndHarmsNothing) {
  bool full = true;
  DiskStoreOptions options{.bytes_limit = 1 << 20};
  options.write_file = [&](const std::string& path, const EntryHeader&, std::span<const std::byte>,
                           const EntrySum&) {
    return full ? IoError(path + ": No space left on device") : OkStatus();
  };
  Open(std::move(options));
  store_->Write(Entry(1));
  store_->Write(Entry(2));
  const Status status = Flush();
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_NE(status.message().find("2 entries"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("No space left"), std::string::npos) << status.message();
  EXPECT_FALSE(Has(1) || Has(2));
  EXPECT_TRUE(Flush().ok());
  EXPECT_EQ(store_->stats().write_failures, 2u);
  EXPECT_EQ(store_->stats().bytes, 0);
}

// A write that hangs until the test lets it go on.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  void Pass() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return open; });
  }
  void Open() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

TEST_F(DiskStoreTest, WhatWaitsIsBoundedAndFlushWaitsForIt) {
  Gate gate;
  DiskStoreOptions options{.bytes_limit = 1 << 20, .queue_bytes = 2 * kBytes};
  options.write_file = [&](const std::string&, const EntryHeader&, std::span<const std::byte>,
                           const EntrySum&) {
    gate.Pass();
    return OkStatus();
  };
  Open(std::move(options));
  EXPECT_TRUE(store_->HasRoom(1 << 30));  // one always may
  store_->Write(Entry(1));
  EXPECT_TRUE(store_->HasRoom(kBytes));
  store_->Write(Entry(2));
  EXPECT_FALSE(store_->HasRoom(kBytes));
  EXPECT_TRUE(Has(1) && Has(2));  // about to be
  EXPECT_EQ(store_->Flush(Clock::now(), nullptr).code(), StatusCode::kDeadlineExceeded);
  const std::atomic<bool> gone{true};
  EXPECT_EQ(store_->Flush(Clock::time_point::max(), &gone).code(), StatusCode::kCancelled);
  gate.Open();
  EXPECT_TRUE(Flush().ok());
  EXPECT_TRUE(store_->HasRoom(kBytes));
}

TEST_F(DiskStoreTest, WhatWasReadWaitsBoundedAndInOrder) {
  Open();
  Write(1, 10);
  Open({.bytes_limit = 1 << 20, .queue_bytes = 2 * kBytes});
  std::vector<PrefixKey> keys;
  for (size_t n = 1; n <= 10; ++n) keys.push_back({digests_[n], 0});
  store_->Read(7, keys, std::vector<int64_t>(10, kBytes));
  for (size_t n = 1; n <= 10; ++n) {
    const PrefixRead read = Next();
    EXPECT_EQ(read.index, n - 1);
    ASSERT_TRUE(read.bytes.has_value());
    EXPECT_EQ(read.bytes->span()[0], static_cast<std::byte>(n));
  }
  // Nobody takes them: the next one is not held up.
  store_->Read(8, keys, std::vector<int64_t>(10, kBytes));
  EXPECT_EQ(Next().ticket, 8u);
  store_->CancelRead(8);
  store_->Read(9, {keys[3]}, {kBytes});
  EXPECT_EQ(Next().ticket, 9u);
  EXPECT_FALSE(store_->NextRead().has_value());
  // And it ends while somebody could still take them.
  store_->Read(10, keys, std::vector<int64_t>(10, kBytes));
}

TEST_F(DiskStoreTest, AFolderIsOneProcessesAlone) {
  Open();
  const auto second = PrefixFolder::Open(folder_);
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  store_.reset();
  EXPECT_TRUE(PrefixFolder::Open(folder_).ok());
}

TEST_F(DiskStoreTest, AFolderThatCannotBeOneIsSaid) {
  std::ofstream(folder_) << "a file";
  for (const std::string& path : {folder_, folder_ + "/below"}) {
    const auto opened = PrefixFolder::Open(path);
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.status().message().find(folder_), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
