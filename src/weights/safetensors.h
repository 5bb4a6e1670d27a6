// SafetensorsFile: an opened .safetensors file: string metadata and tensor views over a read-only
// mapping. Immutable after Open; thread-safe. Keep the shared_ptr as long as any view.
//
// The whole header is checked before a view is made: its length (at most 100,000,000 bytes, inside
// the file), JSON object with unique keys, known dtypes, non-negative shapes, shape times size
// equal to the span, spans ordered, inside the data, without overlap, hole or trailing bytes, and
// __metadata__ holding strings only. Errors are kDataLoss (kUnimplemented for an unknown dtype) and
// name the file and the tensor.
//
// Source: the safetensors format description (huggingface/safetensors, README).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/mapped_file.h"
#include "weights/tensor.h"

namespace lockstep {

struct SafetensorsContents {
  std::vector<std::pair<std::string, std::string>> metadata;  // in the header's order
  std::vector<TensorView> tensors;                            // by offset in the data
};

// The parse alone, over bytes that the caller keeps alive. `file` is for messages.
Result<SafetensorsContents> ParseSafetensors(std::span<const std::byte> bytes,
                                             std::string_view file);

class SafetensorsFile {
 public:
  // Errors: those of MappedFile::Open and those above.
  static Result<std::shared_ptr<const SafetensorsFile>> Open(const std::string& path);

  const std::string& path() const { return map_.path(); }
  const MappedFile& map() const { return map_; }
  std::span<const std::pair<std::string, std::string>> metadata() const {
    return contents_.metadata;
  }
  std::span<const TensorView> tensors() const { return contents_.tensors; }  // by offset
  const TensorView* FindTensor(std::string_view name) const;                 // null when absent

 private:
  SafetensorsFile(MappedFile map, SafetensorsContents contents);

  MappedFile map_;
  SafetensorsContents contents_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace lockstep
