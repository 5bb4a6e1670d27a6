#include <unistd.h>

#include <new>
#include <utility>

#include "base/log.h"
#include "cache/disk/disk_store_threads.h"

namespace lockstep {
namespace {

Status OutOfRoom() { return Status(StatusCode::kResourceExhausted, "there is no memory for it"); }

}  // namespace

void DiskStore::Read(uint64_t ticket, std::vector<PrefixKey> keys, std::vector<int64_t> bytes) {
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back({ticket, std::move(keys), std::move(bytes)});
  }
  to_read_.notify_one();
}

void DiskStore::CancelRead(uint64_t ticket) {
  {
    const std::lock_guard lock(mutex_);
    if (reading_ == ticket) reading_.reset();
    std::erase_if(asked_, [&](const Asked& asked) { return asked.ticket == ticket; });
    std::erase_if(reads_, [&](const PrefixRead& read) {
      if (read.ticket != ticket) return false;
      if (read.bytes) read_bytes_ -= static_cast<int64_t>(read.bytes->size);
      return true;
    });
  }
  to_read_.notify_one();
}

void DiskStore::ReadAsked() {
  std::unique_lock lock(mutex_);
  while (true) {
    to_read_.wait(lock, [this] { return stop_ || !asked_.empty(); });
    if (stop_) return;
    const Asked asked = std::move(asked_.front());
    asked_.pop_front();
    reading_ = asked.ticket;
    for (size_t i = 0; i < asked.keys.size(); ++i) {
      to_read_.wait(lock, [&] {
        return stop_ || reading_ != asked.ticket || read_bytes_ == 0 ||
               read_bytes_ + asked.bytes[i] <= options_.queue_bytes;
      });
      if (stop_) return;
      if (reading_ != asked.ticket) break;
      lock.unlock();
      ReadOne(asked.ticket, i, asked.keys[i], asked.bytes[i]);
      Wake();
      lock.lock();
    }
  }
}

void DiskStore::ReadOne(uint64_t ticket, size_t index, const PrefixKey& key, int64_t bytes) {
  std::optional<EntryName> name;
  {
    // What is about to be written is waited for: it was found.
    std::unique_lock lock(mutex_);
    const NodeName node = NameOf(key.digest);
    written_.wait(lock, [&] { return stop_ || !coming_.contains({node, key.group}); });
    name = index_.Find(node, key.group);
  }
  PrefixRead read{ticket, index, std::nullopt};
  if (name) {
    Result<PrefixBytes> blocks = OutOfRoom();
    try {
      blocks = ReadEntryFile(PathOf(*name), key, identity_digest_, bytes);
    } catch (const std::bad_alloc&) {
    }
    if (blocks.ok()) {
      read.bytes = std::move(*blocks);
    } else {
      LogWarning("a kept prefix is of no use: {}", blocks.status().message());
      const bool corrupt = blocks.status().code() == StatusCode::kDataLoss;
      if (corrupt) unlink(PathOf(*name).c_str());
      const std::lock_guard lock(mutex_);
      index_.Remove(name->node, name->group);
      stats_.corrupt += corrupt;
    }
  }
  const std::lock_guard lock(mutex_);
  if (reading_ != ticket) return;
  if (read.bytes) {
    ++stats_.read;
    stats_.read_bytes += read.bytes->size;
    read_bytes_ += static_cast<int64_t>(read.bytes->size);
  }
  reads_.push_back(std::move(read));
}

std::optional<PrefixRead> DiskStore::NextRead() {
  std::optional<PrefixRead> read;
  {
    const std::lock_guard lock(mutex_);
    if (reads_.empty()) return read;
    read = std::move(reads_.front());
    reads_.pop_front();
    if (read->bytes) read_bytes_ -= static_cast<int64_t>(read->bytes->size);
  }
  to_read_.notify_one();
  return read;
}

}  // namespace lockstep
