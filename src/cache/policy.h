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

  // Whether a block holds positions. If not, it holds the state after all tokens so far, and a
  // sequence has two: the one that its next step reads and the one that it writes.
  virtual bool by_position() const { return true; }

  // The most blocks that a sequence holds at once on its way from 0 to `tokens` tokens. Never falls
  // as `tokens` grows.
  virtual int64_t WorstBlocks(int64_t tokens) const = 0;

  // Entries of the block table once positions [0, end) are to be stored.
  virtual int64_t TableBlocks(int64_t end) const = 0;

  // Which entries a step that computes from position `begin` on reads or writes: those before
  // KeptBlocks() and those from FirstLive(begin) on. Neither ever falls as `begin` grows.
  virtual int64_t KeptBlocks() const { return 0; }
  virtual int64_t FirstLive(int64_t begin) const = 0;
};

// The policy of `spec.kind`; no step computes more than `step_tokens` tokens of one sequence.
// Errors: kInvalidArgument for a spec that says nothing sensible, kUnimplemented for a kind that is
// not built in.
Result<std::unique_ptr<CachePolicy>> MakeCachePolicy(const CacheGroupSpec& spec,
                                                     int64_t step_tokens);

}  // namespace lockstep
