// MemoryStore: a PrefixStore without a disk and without threads, which does what the test says.
// Outlives the engines that use it, as a folder does. Not thread-safe.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/prefix_store.h"

namespace lockstep::testing {

class MemoryStore : public PrefixStore {
 public:
  using Entries = std::map<std::pair<ChainDigest, int32_t>, std::vector<std::byte>>;

  Entries entries;
  std::vector<ChainDigest> removed;
  std::vector<ChainDigest> used;
  bool has_room = true;
  // How many reads may still be answered.
  int64_t readable = std::numeric_limits<int64_t>::max();
  size_t asked() const { return asked_.size(); }  // and not answered

  const std::string& identity() const override { return identity_; }
  std::vector<uint64_t> Find(std::span<const ChainDigest> digests, bool use) override {
    std::vector<uint64_t> found;
    for (const ChainDigest& digest : digests) {
      uint64_t groups = 0;
      for (int32_t g = 0; g < 8; ++g) groups |= uint64_t{entries.contains({digest, g})} << g;
      found.push_back(groups);
      if (use && groups != 0) used.push_back(digest);
    }
    return found;
  }
  bool HasRoom(int64_t) const override { return has_room; }
  void Write(PrefixEntry entry) override {
    const auto bytes = entry.bytes.span();
    entries[{entry.key.digest, entry.key.group}].assign(bytes.begin(), bytes.end());
  }
  void Remove(const ChainDigest& digest) override {
    removed.push_back(digest);
    std::erase_if(entries, [&](const auto& entry) { return entry.first.first == digest; });
  }
  void Read(uint64_t ticket, std::vector<PrefixKey> keys, std::vector<int64_t> bytes) override {
    for (size_t i = 0; i < keys.size(); ++i) asked_.push_back({ticket, i, keys[i], bytes[i]});
  }
  void CancelRead(uint64_t ticket) override {
    std::erase_if(asked_, [&](const Asked& asked) { return asked.ticket == ticket; });
  }
  std::optional<PrefixRead> NextRead() override {
    if (asked_.empty() || readable <= 0) return std::nullopt;
    --readable;
    const Asked asked = asked_.front();
    asked_.pop_front();
    PrefixRead read{asked.ticket, asked.index, std::nullopt};
    const auto found = entries.find({asked.key.digest, asked.key.group});
    if (found == entries.end()) return read;
    if (static_cast<int64_t>(found->second.size()) != asked.bytes) {
      entries.erase(found);  // as a file that is no good
      return read;
    }
    read.bytes.emplace(found->second.size());
    std::ranges::copy(found->second, read.bytes->span().begin());
    return read;
  }
  void SetWake(std::function<void()>) override {}
  Status Flush(std::chrono::steady_clock::time_point, const std::atomic<bool>*) override {
    return OkStatus();
  }
  PrefixStoreStats stats() const override { return {}; }

 private:
  struct Asked {
    uint64_t ticket;
    size_t index;
    PrefixKey key;
    int64_t bytes;
  };
  const std::string identity_ = "fake";
  std::deque<Asked> asked_;
};

}  // namespace lockstep::testing
