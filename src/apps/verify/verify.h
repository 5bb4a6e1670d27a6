// `lockstep verify`: shows on a machine, for a model, that the bytes of an answer depend on its
// request alone. The same requests are answered alone, one after the other, and then among each
// other, with their prompts cut in other places, after a cached beginning and by other numbers of
// threads; everything an answer consists of is compared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "engine/engine.h"

namespace lockstep {

struct VerifyOptions {
  int32_t requests = 24;
  int32_t threads = 1;  // one thread alone is always among those tried
  uint64_t seed = 1;    // of the requests
};

// One way of serving the requests, compared with the first one.
struct Variation {
  std::string name;
  int32_t threads = 1;
  int32_t answers = 0;
  int64_t tokens = 0;         // of the answers
  int64_t cached_tokens = 0;  // of the prompts: taken over instead of computed
  int32_t different = 0;      // answers
  std::string first;          // where the first one of them differs
};

// An engine that keeps prefixes. `cut`: EngineOptions::chunk_cut.
using EngineFactory = std::function<Result<std::unique_ptr<Engine>>(
    int32_t threads, std::function<int32_t(int32_t)> cut)>;

// Calls `report` after each variation. Returns whether all answers were the same. Errors: the
// factory's, and those of an answer that failed.
Result<bool> Verify(const EngineFactory& make_engine, const VerifyOptions& options,
                    const std::function<void(const Variation&)>& report);

}  // namespace lockstep
