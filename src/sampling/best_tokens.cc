#include "sampling/best_tokens.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr size_t kHeapPays = 256;  // up to so many, few tokens ever displace another

}  // namespace

void BestTokens(std::span<const float> logits, int32_t count, std::vector<TokenLogprob>* best) {
  best->clear();
  const size_t wanted = std::min<size_t>(std::max(count, 0), logits.size());
  if (wanted == 0) return;
  if (wanted > kHeapPays) {
    for (size_t t = 0; t < logits.size(); ++t)
      best->push_back({static_cast<TokenId>(t), logits[t]});
    std::nth_element(best->begin(), best->begin() + (wanted - 1), best->end(), Better);
    best->resize(wanted);
    std::sort(best->begin(), best->end(), Better);
    return;
  }
  // A heap whose front is the worst kept token; ids ascend, so an equal logit never displaces one.
  for (size_t t = 0; t < logits.size(); ++t) {
    const TokenLogprob entry{static_cast<TokenId>(t), logits[t]};
    if (best->size() < wanted) {
      best->push_back(entry);
      std::push_heap(best->begin(), best->end(), Better);
    } else if (entry.logprob > best->front().logprob) {
      std::pop_heap(best->begin(), best->end(), Better);
      best->back() = entry;
      std::push_heap(best->begin(), best->end(), Better);
    }
  }
  std::sort_heap(best->begin(), best->end(), Better);
}

}  // namespace lockstep
