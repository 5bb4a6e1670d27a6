// StepPace: how many prompt tokens a step may take beside rows that decode, so that these need not
// wait for their next tokens longer than a time budget. It learns from the steps that were computed
// what a prompt token costs, so it follows the machine, the model and the length of the prompts.
// It changes when an answer comes, never its bytes.
//
// A step may last as long as the budget, or twice as long as one that only decodes where that is
// longer: prompts get half of the time of a machine that decodes slowly, and never nothing.
//
// Not thread-safe: the engine's thread alone.
#pragma once

#include <cstdint>

namespace lockstep {

class StepPace {
 public:
  // `budget_seconds` 0: no bound. REQUIRES: step_tokens >= 1.
  StepPace(double budget_seconds, int32_t step_tokens);

  // At least 1, at most step_tokens.
  int32_t PromptTokens() const;

  // A step of so many decoding rows and prompt tokens took so long.
  void Observe(int32_t decoding, int32_t prompt_tokens, double seconds);

 private:
  const double budget_;
  const int32_t step_tokens_;
  double decode_ = 0;        // seconds of a step that only decodes; 0: none was seen
  double prompt_token_ = 0;  // seconds a prompt token adds to a step; 0: none was seen
};

}  // namespace lockstep
