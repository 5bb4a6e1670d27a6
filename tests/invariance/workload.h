// The workload of the invariance tests: requests of mixed length and sampling, and everything an
// answer consists of as bytes that can be compared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/request.h"
#include "kernels/attention.h"
#include "kernels/kernels.h"

namespace lockstep {

// `count` requests over a vocabulary, the same for the same arguments. Some have stop strings, some
// are further choices of the request before them. No sinks.
std::vector<GenerationRequest> MixedRequests(int32_t count, int32_t vocab_size,
                                             int32_t longest_prompt, uint64_t seed);

// How one run serves the requests.
struct Serving {
  const kernels::KernelTable* kernels = nullptr;
  int32_t threads = 1;
  kernels::KvScheme kv = {};
  int32_t step_tokens = 128;
  int32_t max_rows = 16;
  bool alone = false;           // one request at a time, in an engine of its own batch
  uint64_t cuts_and_order = 0;  // not 0: random chunk cuts and random arrival from this seed
};

// Every answer's bytes, in the order of `requests`: text, tokens, the bits of all
// log-probabilities, finish reason, usage and, last, the stop string. Empty with a test failure
// when something could not be done.
std::vector<std::string> Serve(const std::string& model_path, const Serving& serving,
                               const std::vector<GenerationRequest>& requests);

struct Served {
  std::string bytes;  // as above
  int32_t cached_tokens = 0;
};
// One request after the other on one engine that keeps prefixes.
std::vector<Served> ServeInTurn(const std::string& model_path, const Serving& serving,
                                const std::vector<GenerationRequest>& requests);

}  // namespace lockstep
