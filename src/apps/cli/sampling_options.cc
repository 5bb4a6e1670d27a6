#include "apps/cli/sampling_options.h"

#include <CLI/CLI.hpp>

namespace lockstep {

GenerationRequest SamplingOptions::Request(std::vector<TokenId> prompt) const {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling = params;
  request.seed = seed;
  request.max_tokens = max_tokens;
  request.stop = StopStrings(stop);
  return request;
}

void AddSamplingOptions(CLI::App* command, SamplingOptions* options) {
  SamplingParams& params = options->params;
  command
      ->add_option("-n,--max-tokens", options->max_tokens,
                   "Tokens to generate at most; -1: until the model ends or the context is full")
      ->check(CLI::Range(-1, 1 << 30))
      ->capture_default_str();
  command->add_option("--temperature", params.temperature, "0: always the best token")
      ->check(CLI::Range(0.0f, 100.0f))
      ->capture_default_str();
  command->add_option("--top-k", params.top_k, "Draw among the k best; 0: off")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command->add_option("--top-p", params.top_p, "Draw among the best that hold this probability")
      ->check(CLI::Range(0.0f, 1.0f))
      ->capture_default_str();
  command->add_option("--min-p", params.min_p, "Draw among those this likely relative to the best")
      ->check(CLI::Range(0.0f, 1.0f))
      ->capture_default_str();
  command->add_option("--repetition-penalty", params.repetition_penalty, "1: off")
      ->check(CLI::Range(0.01f, 10.0f))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Reproduces an answer; drawn anew when absent");
  command->add_option("--stop", options->stop, "A text that ends the answer; may be repeated");
}

}  // namespace lockstep
