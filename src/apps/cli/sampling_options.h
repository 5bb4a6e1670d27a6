// The sampling flags of `generate` and `chat`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// A seed as the APIs take it: an integer that 64 bits hold, with a sign or without. None for
// anything else, instead of the nearest one that fits.
std::optional<uint64_t> ParseSeed(std::string_view text);

void AddSamplingOptions(CLI::App* command, SamplingOptions* options);

}  // namespace lockstep
