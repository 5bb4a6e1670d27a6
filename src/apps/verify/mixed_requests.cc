#include "apps/verify/mixed_requests.h"

#include <random>

namespace lockstep {

std::vector<GenerationRequest> MixedRequests(int32_t count, int32_t vocab_size,
                                             int32_t longest_prompt, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t bound) { return static_cast<int32_t>(random() % bound); };
  std::vector<GenerationRequest> requests(count);
  for (GenerationRequest& request : requests) {
    const int32_t length =
        1 + (below(4) == 0 ? below(longest_prompt) : below(longest_prompt / 8 + 1));
    for (int32_t i = 0; i < length; ++i) request.prompt.push_back(below(vocab_size));
    request.max_tokens = 1 + below(24);
    request.ignore_eos = below(2) == 0;
    request.seed = random();
    SamplingParams& sampling = request.sampling;
    sampling.temperature = below(3) == 0 ? 0.0f : 0.3f + 0.1f * below(15);
    if (below(3) == 0) sampling.top_k = 1 + below(50);
    if (below(3) == 0) sampling.top_p = 0.5f + 0.05f * below(10);
    if (below(4) == 0) sampling.min_p = 0.02f * below(10);
    if (below(3) == 0) sampling.repetition_penalty = 1.0f + 0.1f * below(5);
    if (below(4) == 0) sampling.presence_penalty = 0.5f * below(4);
    if (below(4) == 0) sampling.frequency_penalty = 0.5f * below(4);
    if (below(4) == 0) sampling.logit_bias = {{below(vocab_size), 5.0f}};
    if (below(2) == 0) sampling.logprobs = below(6);
    if (below(6) == 0) request.prompt_logprobs = below(4);
    if (below(3) == 0) request.stop = {"e", " a", "0", "never to be seen"};
    // Further choices of one request, as the API makes them of n.
    if (&request > &requests[1] && below(6) == 0) {
      request = (&request)[-1];
      ++request.sampling.stream;
    }
  }
  return requests;
}

}  // namespace lockstep
