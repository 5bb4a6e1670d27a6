// BlockParts: where the bytes of one cache group's blocks lie, so that they can be copied out and
// in: a part in each layer's slab. Exported, a block is its parts one after the other, in the order
// of the layers, each as the kernels lay it out, which is the same on every instruction set.
//
// Not thread-safe. Borrows the slabs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"

namespace lockstep {

class BlockParts {
 public:
  // Block b's part: `bytes` bytes at data + b * bytes.
  void Add(std::byte* data, int64_t bytes) { slabs_.push_back({data, bytes}); }

  // REQUIRES: the sum of all parts' bytes for each block.
  void Export(std::span<const BlockId> blocks, std::span<std::byte> to) const;
  void Import(std::span<const BlockId> blocks, std::span<const std::byte> from) const;

 private:
  struct Slab {
    std::byte* data;
    int64_t bytes;
  };
  std::vector<Slab> slabs_;
};

}  // namespace lockstep
