// GgufFile: an opened GGUF file, version 2 or 3, little endian: metadata and tensor views over a
// read-only mapping. Immutable after Open; thread-safe. Keep the shared_ptr as long as any view.
//
// Split files ("name-00001-of-00003.gguf"): open the first part and the others are opened with it;
// metadata() is the first part's, tensors() those of all parts in order.
//
// Everything is checked before it is used or allocated for: counts against the bytes left, string
// lengths, at most 4 dimensions, products against overflow, rows against block sizes, alignment (a
// power of two from 8 to 1 MiB), offsets (aligned, inside the file, not overlapping), duplicate
// keys and tensor names. Names longer than the format's 64 bytes (tensors) and 65535 bytes (keys)
// are refused, never cut. Errors name the file and the key or tensor.
//
// Source: the GGUF specification (ggml, docs/gguf.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "platform/mapped_file.h"
#include "weights/gguf_metadata.h"
#include "weights/tensor.h"

namespace lockstep {

class GgufFile {
 public:
  // Errors: those of MappedFile::Open; kInvalidArgument (not a GGUF file, a part that is not the
  // first); kUnimplemented (big endian, another version, unknown tensor type); kDataLoss (anything
  // in the file that cannot be true); kNotFound (a missing part, by name).
  static Result<std::shared_ptr<const GgufFile>> Open(const std::string& path);

  const std::string& path() const { return parts_.front().path(); }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  std::span<const MappedFile> parts() const { return parts_; }  // one, or the parts of a split file

  const GgufMetadata& metadata() const { return metadata_; }
  std::span<const TensorView> tensors() const { return tensors_; }  // in the file's order
  const TensorView* FindTensor(std::string_view name) const;        // null when absent

 private:
  GgufFile() = default;
  Status OpenFirst(const std::string& path);
  Status AddPart(const std::string& path, uint32_t number, uint32_t count);
  Status OpenOtherParts();

  std::vector<MappedFile> parts_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  GgufMetadata metadata_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace lockstep
