// Submit a request and wait for its whole answer: for the command line, tests and whoever does not
// stream. Not for the engine's thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/request.h"

namespace lockstep {

struct Answer {
  std::string text;
  std::vector<TokenEvent> tokens;
  std::vector<PositionLogprobs> prompt;  // when asked: entry i is the distribution after prompt[i]
  GenerationEnd end;
};

// Replaces request.sink. Errors: Engine::Submit's; what happens later stands in Answer::end.
Result<Answer> Collect(Engine& engine, GenerationRequest request);

}  // namespace lockstep
