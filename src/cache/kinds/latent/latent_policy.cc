// Latent attention: a position's latent and rope key instead of its keys and values. The bytes of a
// block are the executor's to say; which blocks there are is as in full attention.
#include "cache/policy.h"

namespace lockstep {

Result<std::unique_ptr<CachePolicy>> MakePagedPolicy(const CacheGroupSpec& spec,
                                                     int64_t step_tokens);
Result<std::unique_ptr<CachePolicy>> MakeLatentPolicy(const CacheGroupSpec& spec,
                                                      int64_t step_tokens);
Result<std::unique_ptr<CachePolicy>> MakeLatentPolicy(const CacheGroupSpec& spec,
                                                      int64_t step_tokens) {
  return MakePagedPolicy(spec, step_tokens);
}

}  // namespace lockstep
