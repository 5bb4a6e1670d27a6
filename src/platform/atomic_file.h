// AtomicFile: writes a file that appears under its name whole and durable, or not at all: into
// NAME.tmp, then fsync, rename, fsync of the folder. Readers of an older file of the name keep it.
// One process at a time writes a name; what a killed one left behind is overwritten.
//
// Move-only; without Commit the destructor removes what was written. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace lockstep {

class AtomicFile {
 public:
  // Errors name the path: kFailedPrecondition (another process writes it, or no permission),
  // kNotFound (no such folder), kIoError.
  static Result<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) = delete;
  ~AtomicFile();

  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  // Nothing may follow it.
  Status Commit();

 private:
  AtomicFile(std::string path, int fd);
  std::string temporary() const { return path_ + ".tmp"; }

  std::string path_;
  int fd_ = -1;  // -1: committed or moved from
};

}  // namespace lockstep
