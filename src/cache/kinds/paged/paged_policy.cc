// Full attention: every position stays, block i holds [i * block_tokens, (i + 1) * block_tokens).
#include "cache/policy.h"

namespace lockstep {
namespace {

class PagedPolicy : public CachePolicy {
 public:
  explicit PagedPolicy(int64_t block_tokens) : block_tokens_(block_tokens) {}

  int64_t WorstBlocks(int64_t tokens) const override { return TableBlocks(tokens); }
  int64_t TableBlocks(int64_t end) const override {
    return (end + block_tokens_ - 1) / block_tokens_;
  }
  int64_t FirstLive(int64_t) const override { return 0; }

 private:
  const int64_t block_tokens_;
};

}  // namespace

Result<std::unique_ptr<CachePolicy>> MakePagedPolicy(const CacheGroupSpec& spec, int64_t);
Result<std::unique_ptr<CachePolicy>> MakePagedPolicy(const CacheGroupSpec& spec, int64_t) {
  return std::unique_ptr<CachePolicy>(std::make_unique<PagedPolicy>(spec.block_tokens));
}

}  // namespace lockstep
