// PrefixStore: where the blocks of cached prefixes are kept beside the pools, so that they outlive
// them: a folder on disk (cache/disk), or a fake in tests. It deals in bytes under names; which
// tokens a name stands for, which blocks to save and where to put what comes back is its caller's
// to know. An entry is one cache group's part of one span of the prefix tree.
//
// Nothing here waits for a disk but Flush. What cannot be kept or read is counted and logged and is
// never an error of a request.
//
// Thread-safety: one thread for all but SetWake, Flush and stats, which any thread may call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/chain_digest.h"

namespace lockstep {

struct PrefixKey {
  ChainDigest digest{};  // of all tokens up to the end of the span
  int32_t group = 0;
};

// Bytes that are not set to anything when they are made. Throws std::bad_alloc.
struct PrefixBytes {
  PrefixBytes() = default;
  explicit PrefixBytes(size_t count)
      : data(std::make_unique_for_overwrite<std::byte[]>(count)), size(count) {}
  std::span<std::byte> span() { return {data.get(), size}; }
  std::span<const std::byte> span() const { return {data.get(), size}; }

  std::unique_ptr<std::byte[]> data;
  size_t size = 0;
};

struct PrefixEntry {
  PrefixKey key;
  ChainDigest parent{};  // of all tokens up to the beginning of the span
  PrefixBytes bytes;     // the blocks of the span, as the executor exports them
};

// What came of one name of a Read.
struct PrefixRead {
  uint64_t ticket = 0;
  size_t index = 0;                  // of the name among those that were asked together
  std::optional<PrefixBytes> bytes;  // none: there is no such entry (any more) or it is no good
};

struct PrefixStoreStats {
  int64_t entries = 0;
  int64_t bytes = 0;  // of the entries, as they lie on disk
  int64_t bytes_limit = 0;
  uint64_t written = 0;
  uint64_t written_bytes = 0;
  uint64_t write_failures = 0;
  uint64_t read = 0;
  uint64_t read_bytes = 0;
  uint64_t corrupt = 0;    // files that were not what they should be, and are gone
  uint64_t evictions = 0;  // entries that had to go for others
};

class PrefixStore {
 public:
  virtual ~PrefixStore() = default;

  // What names depend on besides tokens: the identity that ChainRoot takes.
  virtual const std::string& identity() const = 0;

  // Which entries there are: bit g of answer i says that group g's under digests[i] can be read,
  // or is about to be. `used`: they are of use now, so that others go before them.
  virtual std::vector<uint64_t> Find(std::span<const ChainDigest> digests, bool used) = 0;

  // Whether another entry of so many bytes may wait to be written now; one always may.
  virtual bool HasRoom(int64_t bytes) const = 0;
  virtual void Write(PrefixEntry entry) = 0;
  // Of all groups, and of all beginnings that go on from this one.
  virtual void Remove(const ChainDigest& digest) = 0;

  // Asks for entries of `bytes[i]` bytes each. They come in this order out of NextRead, all with
  // this ticket. A ticket is used once.
  virtual void Read(uint64_t ticket, std::vector<PrefixKey> keys, std::vector<int64_t> bytes) = 0;
  virtual void CancelRead(uint64_t ticket) = 0;
  virtual std::optional<PrefixRead> NextRead() = 0;

  // Called from another thread when NextRead or HasRoom may answer otherwise than before. Null:
  // nobody; the one before is not called any more once this returns.
  virtual void SetWake(std::function<void()> wake) = 0;

  // Returns when all that was written or removed before is durable. Errors: kDeadlineExceeded,
  // kCancelled when `gone` becomes true, and kIoError when something could not be written since
  // the last Flush said so.
  virtual Status Flush(std::chrono::steady_clock::time_point deadline,
                       const std::atomic<bool>* gone) = 0;

  virtual PrefixStoreStats stats() const = 0;
};

}  // namespace lockstep
