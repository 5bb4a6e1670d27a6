// DiskStore: a PrefixStore in a folder, one file an entry (entry_file.h). A thread writes and
// another one reads, so that who asks never waits for the disk; what waits to be written and what
// was read and not yet taken are bounded.
//
// A file appears under its name whole and durable, or not at all (platform/atomic_file.h). So a
// process may be killed at any moment: what it leaves is whole entries, and unfinished files that
// the next one removes. A file that is not what its name says, torn, corrupt, or of another model
// under the name of one of this, is removed when it is read and counted; files of other names are
// left alone. What lies in the folder for other models counts into its limit and goes when it is
// the oldest.
//
// Thread-safety: as PrefixStore.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "cache/disk/entry_file.h"
#include "cache/prefix_store.h"

namespace lockstep {

inline constexpr int64_t kPrefixQueueBytes = int64_t{64} << 20;

struct DiskStoreOptions {
  int64_t bytes_limit = 0;  // of the files; > 0
  // Bytes that wait to be written, and bytes that wait to be taken; one entry always may.
  int64_t queue_bytes = kPrefixQueueBytes;
  // Writes the parts of a file; tests let it fail. Null: into an AtomicFile.
  std::function<Status(const std::string& path, const EntryHeader& header,
                       std::span<const std::byte> blocks, const EntrySum& sum)>
      write_file = nullptr;
};

// A folder, made when it is not there, that is this process's alone and can be written to.
class PrefixFolder {
 public:
  // Errors, which name the folder: kFailedPrecondition when another process has it or it cannot be
  // written to, those of the system.
  static Result<std::unique_ptr<PrefixFolder>> Open(const std::string& path);
  ~PrefixFolder();
  PrefixFolder(const PrefixFolder&) = delete;
  PrefixFolder& operator=(const PrefixFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  PrefixFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  const std::string path_;
  const int lock_;
};

// Looks what the folder holds and starts the threads. `identity`: PrefixStore::identity.
Result<std::unique_ptr<PrefixStore>> MakeDiskStore(std::unique_ptr<PrefixFolder> folder,
                                                   const std::string& identity,
                                                   DiskStoreOptions options);

}  // namespace lockstep
