#include "cache/disk/disk_store.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "cache/disk/disk_store_threads.h"
#include "platform/atomic_file.h"

namespace lockstep {
namespace {

constexpr std::string_view kUnfinished = ".lsprefix.tmp";
constexpr size_t kMostRefused = 4096;

Status WriteEntryFile(const std::string& path, const EntryHeader& header,
                      std::span<const std::byte> blocks, const EntrySum& sum) {
  LOCKSTEP_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  LOCKSTEP_RETURN_IF_ERROR(file.WriteAt(0, header));
  LOCKSTEP_RETURN_IF_ERROR(file.WriteAt(header.size(), blocks));
  LOCKSTEP_RETURN_IF_ERROR(file.WriteAt(header.size() + blocks.size(), sum));
  return file.Commit();
}

}  // namespace

DiskStore::DiskStore(std::unique_ptr<PrefixFolder> folder, const std::string& identity,
                     DiskStoreOptions options)
    : folder_(std::move(folder)),
      identity_(identity),
      identity_digest_(DigestOf(identity)),
      options_(std::move(options)) {
  if (!options_.write_file) options_.write_file = WriteEntryFile;
}

Status DiskStore::Start() {
  Scan();
  MakeRoom(0, nullptr);
  writer_ = std::thread([this] { WriteTasks(); });
  reader_ = std::thread([this] { ReadAsked(); });
  return OkStatus();
}

DiskStore::~DiskStore() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  to_write_.notify_all();
  to_read_.notify_all();
  written_.notify_all();
  if (writer_.joinable()) writer_.join();
  if (reader_.joinable()) reader_.join();
}

// What there is, by names, sizes and times: what is in a file shows when it is read.
void DiskStore::Scan() {
  struct Found {
    std::filesystem::file_time_type used;
    EntryName name;
    int64_t bytes;
  };
  std::vector<Found> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_->path(), error), end; !error && at != end;
       at.increment(error)) {
    const std::string file_name = at->path().filename().string();
    std::error_code gone;
    if (file_name.ends_with(kUnfinished)) {
      std::filesystem::remove(at->path(), gone);
      continue;
    }
    const auto name = ParseFileName(file_name);
    if (!name || !at->is_regular_file(gone)) continue;
    const auto bytes = static_cast<int64_t>(at->file_size(gone));
    const auto used = at->last_write_time(gone);
    if (!gone) found.push_back({used, *name, bytes});
  }
  if (error) LogWarning("{}: cannot be read to its end: {}", folder_->path(), error.message());
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.used < b.used; });
  for (const Found& file : found) index_.Add(file.name, file.bytes);
}

std::vector<uint64_t> DiskStore::Find(std::span<const ChainDigest> digests, bool used) {
  std::vector<uint64_t> found;
  found.reserve(digests.size());
  const std::lock_guard lock(mutex_);
  for (const ChainDigest& digest : digests) {
    const NodeName node = NameOf(digest);
    uint64_t groups = index_.Groups(node);
    if (used && groups != 0) index_.Use(node);
    for (auto at = coming_.lower_bound({node, 0}); at != coming_.end() && at->first == node; ++at) {
      groups |= uint64_t{1} << at->second;
    }
    found.push_back(groups);
  }
  return found;
}

bool DiskStore::HasRoom(int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_ == 0 || waiting_bytes_ + bytes <= options_.queue_bytes;
}

void DiskStore::Write(PrefixEntry entry) {
  {
    const std::lock_guard lock(mutex_);
    Task& task = tasks_.emplace_back();
    bool fresh = false;
    try {
      fresh = coming_.emplace(NameOf(entry.key.digest), entry.key.group).second;
    } catch (const std::bad_alloc&) {
      tasks_.pop_back();
      throw;
    }
    if (!fresh) return tasks_.pop_back();
    waiting_bytes_ += static_cast<int64_t>(entry.bytes.size);
    task.write = std::move(entry);
    ++posted_;
  }
  to_write_.notify_one();
}

void DiskStore::Remove(const ChainDigest& digest) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back({{}, NameOf(digest)});
    ++posted_;
  }
  to_write_.notify_one();
}

void DiskStore::WriteTasks() {
  std::unique_lock lock(mutex_);
  while (true) {
    to_write_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    if (task.write) {
      WriteOne(std::move(*task.write));
    } else {
      RemoveAll(task.remove);
    }
    lock.lock();
    ++done_;
    written_.notify_all();
    lock.unlock();
    Wake();
    lock.lock();
  }
}

void DiskStore::WriteOne(PrefixEntry entry) {
  const EntryName name{NameOf(entry.key.digest), NameOf(entry.parent), entry.key.group};
  const Status status = Store(entry, name);
  const int64_t file_bytes = EntryFileBytes(static_cast<int64_t>(entry.bytes.size));
  bool tell = false;
  {
    const std::lock_guard lock(mutex_);
    coming_.erase({name.node, name.group});
    waiting_bytes_ -= static_cast<int64_t>(entry.bytes.size);
    if (status.ok()) {
      refused_.erase(name.node);
      index_.Add(name, file_bytes);
      ++stats_.written;
      stats_.written_bytes += static_cast<uint64_t>(file_bytes);
      last_failure_ = OkStatus();
    } else {
      tell = last_failure_.ok();
      ++stats_.write_failures;
      last_failure_ = status;
    }
  }
  if (tell) {
    LogWarning("a prefix could not be kept; said once until one can: {}", status.message());
  }
}

Status DiskStore::Store(const PrefixEntry& entry, const EntryName& name) {
  const int64_t file_bytes = EntryFileBytes(static_cast<int64_t>(entry.bytes.size));
  if (file_bytes > options_.bytes_limit) {
    return ResourceExhausted("an entry is larger than all that may be kept", "prefix-dir-gib");
  }
  if (!MakeRoom(file_bytes, &name)) {
    return ResourceExhausted("a prefix is larger than all that may be kept", "prefix-dir-gib");
  }
  const EntryHeader header = HeaderOf(entry, identity_digest_);
  return options_.write_file(PathOf(name), header, entry.bytes.span(),
                             SumOf(header, entry.bytes.span()));
}

// Lets the oldest go until there is room for so many bytes more. False: it would have to be what
// `next` goes on from, and neither is of use without the other.
bool DiskStore::MakeRoom(int64_t bytes, const EntryName* next) {
  while (true) {
    std::optional<EntryName> oldest;
    {
      const std::lock_guard lock(mutex_);
      const bool apart = next != nullptr && refused_.contains(next->parent);
      if (!apart && index_.bytes() + bytes <= options_.bytes_limit) return true;
      oldest = index_.Oldest();
      if (!oldest) return true;
      if (apart ||
          (next != nullptr && (oldest->node == next->parent || oldest->node == next->node))) {
        if (refused_.size() >= kMostRefused) refused_.clear();
        refused_.insert(next->node);
        return false;
      }
      index_.Remove(oldest->node, oldest->group);
      ++stats_.evictions;
    }
    unlink(PathOf(*oldest).c_str());
  }
}

void DiskStore::RemoveAll(const NodeName& node) {
  std::vector<EntryName> entries;
  {
    const std::lock_guard lock(mutex_);
    entries = index_.Subtree(node);
  }
  for (const EntryName& name : entries) Drop(name);
}

void DiskStore::Drop(const EntryName& name) {
  {
    const std::lock_guard lock(mutex_);
    index_.Remove(name.node, name.group);
  }
  unlink(PathOf(name).c_str());
}

void DiskStore::SetWake(std::function<void()> wake) {
  const std::lock_guard lock(wake_mutex_);
  wake_ = std::move(wake);
}

void DiskStore::Wake() {
  const std::lock_guard lock(wake_mutex_);
  if (wake_) wake_();
}

Status DiskStore::Flush(std::chrono::steady_clock::time_point deadline,
                        const std::atomic<bool>* gone) {
  // How often to look whether the one who asked has left.
  constexpr std::chrono::milliseconds kLook{100};
  std::unique_lock lock(mutex_);
  const uint64_t all = posted_;
  while (done_ < all) {
    const auto now = std::chrono::steady_clock::now();
    if (gone != nullptr && gone->load()) return Status(StatusCode::kCancelled, "nobody waits");
    if (stop_ || now >= deadline) {
      return Status(StatusCode::kDeadlineExceeded, "not all of the prefix cache is on disk yet");
    }
    written_.wait_until(lock, std::min(deadline, now + kLook));
  }
  const uint64_t failures =
      stats_.write_failures - std::exchange(failures_told_, stats_.write_failures);
  if (failures == 0) return OkStatus();
  return IoError(std::to_string(failures) + " entries of the prefix cache could not be written" +
                 (last_failure_.ok() ? "" : ", lastly: " + last_failure_.message()));
}

PrefixStoreStats DiskStore::stats() const {
  const std::lock_guard lock(mutex_);
  PrefixStoreStats stats = stats_;
  stats.entries = index_.entries();
  stats.bytes = index_.bytes();
  stats.bytes_limit = options_.bytes_limit;
  return stats;
}

Result<std::unique_ptr<PrefixStore>> MakeDiskStore(std::unique_ptr<PrefixFolder> folder,
                                                   const std::string& identity,
                                                   DiskStoreOptions options) {
  auto store = std::make_unique<DiskStore>(std::move(folder), identity, std::move(options));
  LOCKSTEP_RETURN_IF_ERROR(store->Start());
  return std::unique_ptr<PrefixStore>(std::move(store));
}

}  // namespace lockstep
