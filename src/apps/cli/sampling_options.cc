#include "apps/cli/sampling_options.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "apps/common/number_between.h"

namespace lockstep {

std::optional<uint64_t> ParseSeed(std::string_view text) {
  const char* const end = text.data() + text.size();
  const auto whole = [end](std::from_chars_result result) {
    return result.ec == std::errc() && result.ptr == end;
  };
  uint64_t seed = 0;
  if (whole(std::from_chars(text.data(), end, seed))) return seed;
  int64_t negative = 0;
  if (whole(std::from_chars(text.data(), end, negative))) return static_cast<uint64_t>(negative);
  return std::nullopt;
}

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
      ->check(NumberBetween(0, 100))
      ->capture_default_str();
  command->add_option("--top-k", params.top_k, "Draw among the k best; 0: off")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command->add_option("--top-p", params.top_p, "Draw among the best that hold this probability")
      ->check(NumberBetween(0, 1))
      ->capture_default_str();
  command->add_option("--min-p", params.min_p, "Draw among those this likely relative to the best")
      ->check(NumberBetween(0, 1))
      ->capture_default_str();
  command->add_option("--repetition-penalty", params.repetition_penalty, "1: off")
      ->check(NumberBetween(0.01, 100))
      ->capture_default_str();
  command->add_option_function<std::string>(
      "--seed",
      [options](const std::string& text) {
        options->seed = ParseSeed(text);
        if (!options->seed) {
          throw CLI::ValidationError("--seed", text + " is not an integer of 64 bits");
        }
      },
      "Reproduces an answer; drawn anew when absent");
  command->add_option("--stop", options->stop, "A text that ends the answer; may be repeated");
}

}  // namespace lockstep
