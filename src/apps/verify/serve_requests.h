// Serves requests on an engine and keeps everything an answer consists of as bytes that can be
// compared. Not for the engine's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/request.h"

namespace lockstep {

struct ServedAnswer {
  // Text, tokens, the bits of all log-probabilities, finish reason, usage but for what was cached
  // and, last, the stop string.
  std::string bytes;
  std::vector<TokenId> tokens;
  int32_t cached_tokens = 0;
};

// Both replace the requests' sinks and return the answers in the order of `requests`. Errors: those
// of Engine::Submit and of an answer that failed, naming the request by its index.

// One after the other.
Result<std::vector<ServedAnswer>> ServeInTurn(Engine& engine,
                                              const std::vector<GenerationRequest>& requests);

// Three at once and, whenever a running one says something, one more: arrivals fall into the middle
// of running batches without any clock. `order_seed`: 0 keeps the order, else it is shuffled.
Result<std::vector<ServedAnswer>> ServeTogether(Engine& engine,
                                                const std::vector<GenerationRequest>& requests,
                                                uint64_t order_seed);

}  // namespace lockstep
