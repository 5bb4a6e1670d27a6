// MappedFile: a regular file mapped read-only into memory. Not a parser and not a cache: pages come
// and go as the kernel likes.
//
// Ownership: move-only; the mapping lives as long as the object, and so do spans into it. Moving
// the object does not move the bytes. Thread-compatible; the bytes may be read from any thread.
//
// The size is taken once, at Open. A file that another process truncates afterwards loses the pages
// behind its new end: reading those raises SIGBUS, as for every mapped file. Replace model files by
// rename, never by writing into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace lockstep {

class MappedFile {
 public:
  enum class Advice { kNormal, kSequential, kRandom, kWillNeed, kDontNeed };

  // Errors, each naming the path: kNotFound, kInvalidArgument (a directory, a device, a zero byte
  // in the path), kFailedPrecondition (no permission), kDataLoss (an empty file),
  // kResourceExhausted (no address space), kIoError (anything else, with the system's words).
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }

  // A hint for the pages that `offset` and `length` touch, clipped to the file. Never changes what
  // the bytes read as; kDontNeed drops the pages from this process, and they are read again on use.
  void Advise(Advice advice, uint64_t offset, uint64_t length) const;
  void Advise(Advice advice) const { Advise(advice, 0, size()); }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes);
  void Unmap();

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace lockstep
