// How a cache group turns tokens into blocks: pure arithmetic, no state, no bytes. One
// implementation a kind, in a folder of its own under kinds/; the KV manager folds over the groups
// and nobody else calls it. Thread-safe.
//
// A new kind is a folder kinds/<name>/ that defines Make<Name>Policy, one name in
// kinds/CMakeLists.txt and one CacheKind (core/cache_spec.h).
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "core/cache_spec.h"

namespace lockstep {

class CachePolicy {
 public:
  virtual ~CachePolicy() = default;

  // The most blocks that a sequence holds on its way from 0 to `tokens` tokens. Never falls as
  // `tokens` grows.
  virtual int64_t WorstBlocks(int64_t tokens) const = 0;

  // Entries of the block table once positions [0, end) are to be stored.
  virtual int64_t TableBlocks(int64_t end) const = 0;
};

// The policy of `spec.kind`. Errors: kUnimplemented for a kind that is not built in.
Result<std::unique_ptr<CachePolicy>> MakeCachePolicy(const CacheGroupSpec& spec);

}  // namespace lockstep
