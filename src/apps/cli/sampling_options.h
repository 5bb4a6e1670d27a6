// The sampling flags of `generate` and `chat`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"

namespace CLI {
class App;
}

namespace lockstep {

struct SamplingOptions {
  SamplingParams params;
  std::optional<uint64_t> seed;
  int32_t max_tokens = -1;
  std::vector<std::string> stop;

  GenerationRequest Request(std::vector<TokenId> prompt) const;
};

void AddSamplingOptions(CLI::App* command, SamplingOptions* options);

}  // namespace lockstep
