// Recurrent layers (short convolutions, linear attention): a block is the state after all tokens so
// far. A step reads one and writes another, so that it can be computed again, and so that the state
// at a boundary can be kept by not writing over it.
#include "cache/policy.h"

namespace lockstep {
namespace {

class RecurrentPolicy : public CachePolicy {
 public:
  bool by_position() const override { return false; }
  int64_t WorstBlocks(int64_t tokens) const override { return tokens > 0 ? 2 : 0; }
  int64_t TableBlocks(int64_t) const override { return 2; }
  int64_t FirstLive(int64_t) const override { return 0; }
};

}  // namespace

Result<std::unique_ptr<CachePolicy>> MakeRecurrentPolicy(const CacheGroupSpec& spec, int64_t);
Result<std::unique_ptr<CachePolicy>> MakeRecurrentPolicy(const CacheGroupSpec&, int64_t) {
  return std::unique_ptr<CachePolicy>(std::make_unique<RecurrentPolicy>());
}

}  // namespace lockstep
