#include "executor/cpu/block_parts.h"

#include <cstring>

#include "base/check.h"

namespace lockstep {

void BlockParts::Export(std::span<const BlockId> blocks, std::span<std::byte> to) const {
  for (const BlockId block : blocks) {
    for (const Slab& slab : slabs_) {
      const auto count = static_cast<size_t>(slab.bytes);
      LOCKSTEP_CHECK(to.size() >= count);
      std::memcpy(to.data(), slab.data + block * slab.bytes, count);
      to = to.subspan(count);
    }
  }
  LOCKSTEP_CHECK(to.empty());
}

void BlockParts::Import(std::span<const BlockId> blocks, std::span<const std::byte> from) const {
  for (const BlockId block : blocks) {
    for (const Slab& slab : slabs_) {
      const auto count = static_cast<size_t>(slab.bytes);
      LOCKSTEP_CHECK(from.size() >= count);
      std::memcpy(slab.data + block * slab.bytes, from.data(), count);
      from = from.subspan(count);
    }
  }
  LOCKSTEP_CHECK(from.empty());
}

}  // namespace lockstep
