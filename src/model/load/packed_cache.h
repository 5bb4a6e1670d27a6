// The packed weights of a checkpoint kept in a file, so that the next start maps them instead of
// packing. One file a checkpoint and numerics class; the layout is the kernels' own, which is the
// same on every instruction set. A file that is not ours, of another checkpoint or version, torn or
// corrupt is a miss, never an error: all of it is checked against its sums when it is opened.
//
// File, little endian:
//   0     header: "LSPACKED", u32 version, u32 0, u64[2] identity, u64 table's offset, its bytes,
//         its XXH3, and the XXH3 of the header before this field
//   4096  matrices, each at a multiple of 4096
//         table, to the end of the file: u32 count, and for each tensor: name, u64 hash; u32 count,
//         and for each matrix: key and a MatrixRecord (packed_cache_format.h). A name or key is a
//         u64 length and its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/gemm.h"
#include "platform/atomic_file.h"
#include "platform/mapped_file.h"
#include "platform/thread_pool.h"
#include "weights/checkpoint.h"

namespace lockstep {

// What tells one checkpoint's packed weights from all others': sizes, times and samples of its
// files, its config.json, and `variant`, for what else decides the bytes.
using CheckpointIdentity = std::array<uint64_t, 2>;
CheckpointIdentity IdentityOf(const Checkpoint& checkpoint, std::string_view variant);

// Over what the checkpoint says of its model besides the tensors: config.json, or the metadata but
// for the tokenizer's.
uint64_t ConfigHash(const Checkpoint& checkpoint);

// Where DIR keeps the file for `identity`.
std::string PackedCachePath(const std::string& folder, const CheckpointIdentity& identity);

// A mapped file. Immutable, thread-safe; matrices point into it.
class PackedCache {
 public:
  // The error is for the log: why there is nothing to map.
  static Result<std::shared_ptr<const PackedCache>> Open(const std::string& path,
                                                         const CheckpointIdentity& identity,
                                                         ThreadPool* pool);

  const kernels::PackedMatrix* Find(const std::string& key) const;  // null when absent
  std::optional<uint64_t> TensorHash(const std::string& name) const;

 private:
  explicit PackedCache(MappedFile map) : map_(std::move(map)) {}
  Status Parse(const CheckpointIdentity& identity, ThreadPool* pool);
  Status ParseTable(std::span<const std::byte> table, uint64_t table_offset, ThreadPool* pool);

  MappedFile map_;
  std::unordered_map<std::string, kernels::PackedMatrix> matrices_;
  std::unordered_map<std::string, uint64_t> tensor_hashes_;
};

// Writes such a file while a checkpoint is loaded. Not thread-safe.
class PackedCacheWriter {
 public:
  static Result<std::unique_ptr<PackedCacheWriter>> Create(const std::string& path,
                                                           const CheckpointIdentity& identity);

  Status Add(const std::string& key, const kernels::PackedMatrix& matrix, ThreadPool* pool);
  void AddTensorHash(std::string name, uint64_t hash);
  // Durable when it returns. Nothing may follow it.
  Status Commit();

 private:
  struct Entry {
    std::string key;
    kernels::PackedMatrix matrix;
    uint64_t offset = 0;
    uint64_t hash = 0;
  };

  PackedCacheWriter(AtomicFile file, const CheckpointIdentity& identity)
      : file_(std::move(file)), identity_(identity) {}

  AtomicFile file_;
  CheckpointIdentity identity_;
  uint64_t end_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, uint64_t>> tensor_hashes_;
};

}  // namespace lockstep
