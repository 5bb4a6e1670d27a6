// Sliding window: position p reads positions (p - window, p], and the sinks [0, sinks) for ever.
// Blocks stand where those of full attention would; those that slid out are given back.
#include <algorithm>

#include "cache/policy.h"

namespace lockstep {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

class WindowPolicy : public CachePolicy {
 public:
  WindowPolicy(const CacheGroupSpec& spec, int64_t step_tokens)
      : block_tokens_(spec.block_tokens),
        window_(spec.window),
        kept_(CeilDivide(spec.sinks, spec.block_tokens)),
        // A step reads window - 1 positions before its first one; wherever their first block
        // begins.
        most_(kept_ + CeilDivide(window_ + step_tokens - 2, block_tokens_) + 1) {}

  int64_t WorstBlocks(int64_t tokens) const override {
    return std::min(TableBlocks(tokens), most_);
  }
  int64_t TableBlocks(int64_t end) const override { return CeilDivide(end, block_tokens_); }
  int64_t KeptBlocks() const override { return kept_; }
  int64_t FirstLive(int64_t begin) const override {
    return std::max<int64_t>(0, begin - window_ + 1) / block_tokens_;
  }

 private:
  const int64_t block_tokens_;
  const int64_t window_;
  const int64_t kept_;
  const int64_t most_;
};

}  // namespace

Result<std::unique_ptr<CachePolicy>> MakeWindowPolicy(const CacheGroupSpec& spec,
                                                      int64_t step_tokens);
Result<std::unique_ptr<CachePolicy>> MakeWindowPolicy(const CacheGroupSpec& spec,
                                                      int64_t step_tokens) {
  if (spec.window < 1 || spec.sinks < 0) {
    return InvalidArgument("a sliding window needs at least one position", "cache_groups");
  }
  return std::unique_ptr<CachePolicy>(std::make_unique<WindowPolicy>(spec, step_tokens));
}

}  // namespace lockstep
