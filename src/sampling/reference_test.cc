// The sampler against transformers' logits processors (tests/conformance/sampling/make_golden.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "sampling/processors.h"
#include "sampling/sampler.h"

namespace lockstep {
namespace {

nlohmann::json GoldenRows() {
  std::ifstream file(std::string(LOCKSTEP_SOURCE_DIR) + "/tests/conformance/sampling/golden.json");
  return nlohmann::json::parse(file)["rows"];
}

TEST(SamplerReference, TruncationsKeepTheReferencesTokens) {
  Sampler sampler(kernels::Table());
  const std::vector<TokenId> sequence = {0};
  for (const auto& row : GoldenRows()) {
    const auto logits = row["logits"].get<std::vector<float>>();
    for (const auto& expected : row["kept"]) {
      SamplingParams params;
      params.temperature = 100.0f;  // comes last, and makes every kept token about as likely
      params.top_k = expected["setting"].value("top_k", 0);
      params.top_p = expected["setting"].value("top_p", 1.0f);
      params.min_p = expected["setting"].value("min_p", 0.0f);
      StepRow step;
      step.sequence = sequence;
      step.count = 1;
      step.prompt_tokens = 1;
      step.sampling = &params;
      const auto ids = expected["ids"].get<std::set<TokenId>>();
      std::set<TokenId> drawn;
      // 30 draws a token miss one of them with a chance of about e^-30 each.
      for (size_t i = 0; i < 30 * ids.size(); ++i) {
        params.seed = i;
        std::vector<float> copy = logits;
        RowOutput output;
        sampler.Sample(step, copy, &output);
        ASSERT_TRUE(output.status.ok());
        drawn.insert(output.token);
      }
      EXPECT_EQ(drawn, ids) << expected["setting"];
    }
  }
}

TEST(SamplerReference, RepetitionPenaltyGivesTheReferencesLogits) {
  for (const auto& row : GoldenRows()) {
    const auto seen = row["seen"].get<std::vector<TokenId>>();
    for (const auto& [penalty, expected] : row["repetition"].items()) {
      SamplingParams params;
      params.repetition_penalty = std::stof(penalty);
      StepRow step;
      step.sequence = seen;
      step.prompt_tokens = static_cast<int32_t>(seen.size());
      step.sampling = &params;
      auto logits = row["logits"].get<std::vector<float>>();
      TokenCounts counts;
      ProcessLogits(step, &counts, logits);
      EXPECT_EQ(logits, expected.get<std::vector<float>>());
    }
  }
}

}  // namespace
}  // namespace lockstep
