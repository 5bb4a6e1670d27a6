#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/settings.h"
#include "apps/cli/token_list.h"
#include "apps/serving/loaded_model.h"
#include "engine/collect.h"

namespace lockstep {
namespace {

struct ScoreOptions {
  ModelOptions model;
  std::string tokens;
  std::string tokens_file;
  std::string text;
  int32_t top = 1;
  bool json = false;
};

Result<std::vector<TokenId>> TokensToScore(const ScoreOptions& options,
                                           const Tokenizer& tokenizer) {
  if (!options.tokens_file.empty()) return ReadTokenList(options.tokens_file);
  if (!options.tokens.empty()) return ParseTokenList(options.tokens, "--tokens");
  return tokenizer.Encode(options.text);
}

// The mean negative log-likelihood of every token but the first; none when there is no other.
std::optional<double> MeanNll(const std::vector<PositionLogprobs>& positions) {
  double sum = 0;
  int64_t count = 0;
  for (const PositionLogprobs& position : positions) {
    if (position.token < 0) continue;
    sum -= position.logprob;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

void PrintJson(const std::vector<TokenId>& ids, const std::vector<PositionLogprobs>& positions) {
  nlohmann::ordered_json top = nlohmann::ordered_json::array();
  for (const PositionLogprobs& position : positions) {
    nlohmann::ordered_json entries = nlohmann::ordered_json::array();
    for (const TokenLogprob& entry : position.top) entries.push_back({entry.id, entry.logprob});
    top.push_back(std::move(entries));
  }
  nlohmann::ordered_json nll;
  if (const auto mean = MeanNll(positions)) nll = *mean;
  const nlohmann::ordered_json out = {
      {"ids", ids}, {"nll", std::move(nll)}, {"top", std::move(top)}};
  std::printf("%s\n", out.dump().c_str());
}

void PrintText(const std::vector<TokenId>& ids, const std::vector<PositionLogprobs>& positions) {
  for (size_t i = 0; i < positions.size(); ++i) {
    std::printf("%zu\t%d\t", i, ids[i]);
    if (positions[i].token >= 0)
      std::printf("next %d %.6f", positions[i].token, positions[i].logprob);
    for (const TokenLogprob& entry : positions[i].top)
      std::printf("\t%d %.6f", entry.id, entry.logprob);
    std::printf("\n");
  }
  if (const auto mean = MeanNll(positions)) {
    std::printf("mean negative log-likelihood %.6f\n", *mean);
  }
}

Status Score(ScoreOptions options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedModel loaded, LoadForServing(options.model));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                            TokensToScore(options, *loaded.tokenizer));
  GenerationRequest request;
  request.prompt = ids;
  request.max_tokens = 0;
  request.prompt_logprobs = options.top;
  LOCKSTEP_ASSIGN_OR_RETURN(const Answer answer, Collect(*loaded.engine, std::move(request)));
  LOCKSTEP_RETURN_IF_ERROR(answer.end.status);
  (options.json ? PrintJson : PrintText)(ids, answer.prompt);
  return OkStatus();
}

}  // namespace

void AddScoreCommand(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<ScoreOptions>();
  options->model.max_rows = 1;  // the KV cache is sized for so many
  CLI::App* command =
      app->add_subcommand("score", "Log-probabilities of the tokens that follow each position");
  AddModelOptions(command, /*positional=*/true, &options->model);
  AddCapacityOptions(command, &options->model);
  CLI::Option_group* what = command->add_option_group("what to score");
  what->add_option("--tokens", options->tokens, "Token ids: 1,2,3");
  what->add_option(
      "--tokens-file", options->tokens_file,
      "A file of token ids: a JSON list, or numbers separated by commas or white space");
  what->add_option("--text", options->text, "A text, encoded by the model's tokenizer");
  what->require_option(1);
  command->add_option("--top", options->top, "How many of the best tokens of each position")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_flag("--json", options->json,
                    "One JSON object: ids, nll (mean over all tokens but the first, "
                    "null when there is one alone), top");
  RunWithSettings(command, [options] { return Score(*options); }, exit_code);
}

}  // namespace lockstep
