// The class behind MakeDiskStore, for its two halves: disk_store.cc (books and the thread that
// writes) and disk_store_reading.cc (the thread that reads). Nobody else's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/disk/disk_store.h"
#include "cache/disk/entry_index.h"

namespace lockstep {

class DiskStore : public PrefixStore {
 public:
  DiskStore(std::unique_ptr<PrefixFolder> folder, const std::string& identity,
            DiskStoreOptions options);
  ~DiskStore() override;
  Status Start();

  const std::string& identity() const override { return identity_; }
  std::vector<uint64_t> Find(std::span<const ChainDigest> digests, bool used) override;
  bool HasRoom(int64_t bytes) const override;
  void Write(PrefixEntry entry) override;
  void Remove(const ChainDigest& digest) override;
  void Read(uint64_t ticket, std::vector<PrefixKey> keys, std::vector<int64_t> bytes) override;
  void CancelRead(uint64_t ticket) override;
  std::optional<PrefixRead> NextRead() override;
  void SetWake(std::function<void()> wake) override;
  Status Flush(std::chrono::steady_clock::time_point deadline,
               const std::atomic<bool>* gone) override;
  PrefixStoreStats stats() const override;

 private:
  struct Task {
    std::optional<PrefixEntry> write;
    NodeName remove{};  // without `write`
  };
  struct Asked {
    uint64_t ticket = 0;
    std::vector<PrefixKey> keys;
    std::vector<int64_t> bytes;
  };

  std::string PathOf(const EntryName& name) const {
    return folder_->path() + "/" + FileNameOf(name);
  }
  void Scan();
  void WriteTasks();
  void WriteOne(PrefixEntry entry);
  Status Store(const PrefixEntry& entry, const EntryName& name);
  bool MakeRoom(int64_t bytes, const EntryName* next);
  void RemoveAll(const NodeName& node);
  void ReadAsked();
  void ReadOne(uint64_t ticket, size_t index, const PrefixKey& key, int64_t bytes);
  void Drop(const EntryName& name);
  void Wake();

  const std::unique_ptr<PrefixFolder> folder_;
  const std::string identity_;
  const ChainDigest identity_digest_;
  DiskStoreOptions options_;

  mutable std::mutex mutex_;  // guards what follows, up to wake_mutex_
  std::condition_variable to_write_;
  std::condition_variable to_read_;
  std::condition_variable written_;
  EntryIndex index_;
  std::deque<Task> tasks_;
  std::set<std::pair<NodeName, int32_t>> coming_;  // of the tasks, and of the one in work
  int64_t waiting_bytes_ = 0;                      // to be written
  uint64_t posted_ = 0;                            // tasks
  uint64_t done_ = 0;
  std::set<NodeName> refused_;  // what there was no room for, so that nothing goes on from it
  std::deque<Asked> asked_;
  std::optional<uint64_t> reading_;  // the ticket; none: nothing, or what was cancelled
  std::deque<PrefixRead> reads_;
  int64_t read_bytes_ = 0;  // of reads_
  bool stop_ = false;
  PrefixStoreStats stats_;
  uint64_t failures_told_ = 0;  // by Flush
  Status last_failure_;

  std::mutex wake_mutex_;
  std::function<void()> wake_;  // guarded by wake_mutex_

  std::thread writer_;
  std::thread reader_;
};

}  // namespace lockstep
