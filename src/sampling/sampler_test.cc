#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "sampling/logprobs.h"

namespace lockstep {
namespace {

// One row over a small vocabulary, whose next position is given by the sequence's length.
class Row {
 public:
  explicit Row(std::vector<float> logits) : logits_(std::move(logits)) {}

  SamplingParams params;
  std::vector<TokenId> sequence = {0};
  int32_t prompt_tokens = 1;
  std::vector<TokenId> banned;
  std::vector<uint32_t> mask;

  RowOutput Sample() {
    StepRow row;
    row.sequence = sequence;
    row.begin = static_cast<int32_t>(sequence.size()) - 1;
    row.count = 1;
    row.prompt_tokens = prompt_tokens;
    row.sampling = &params;
    row.banned = banned;
    row.mask = mask;
    std::vector<float> logits = logits_;
    RowOutput output;
    sampler_.Sample(row, logits, &output);
    return output;
  }

  // How often each token comes over `draws` seeds.
  std::map<TokenId, int> Draw(int draws) {
    std::map<TokenId, int> counts;
    for (int i = 0; i < draws; ++i) {
      params.seed = i;
      counts[Sample().token]++;
    }
    return counts;
  }

 private:
  std::vector<float> logits_;
  Sampler sampler_{kernels::Table()};
};

std::vector<float> FromProbabilities(std::vector<double> p) {
  std::vector<float> logits;
  for (double x : p) logits.push_back(static_cast<float>(std::log(x)));
  return logits;
}

std::vector<TokenId> Keys(const std::map<TokenId, int>& counts) {
  std::vector<TokenId> keys;
  for (const auto& [id, count] : counts) keys.push_back(id);
  return keys;
}

TEST(Sampler, TemperatureZeroTakesTheBestAndTheSmallerIdOfTies) {
  Row row({1.0f, 3.0f, 3.0f, 2.0f});
  for (float temperature : {0.0f, 1e-30f, 1e-6f}) {
    row.params.temperature = temperature;
    EXPECT_EQ(row.Sample().token, 1);
  }
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
  Row row(FromProbabilities(p));
  const int draws = 20000;
  std::map<TokenId, int> counts = row.Draw(draws);
  double chi2 = 0;
  for (int t = 0; t < 4; ++t) {
    chi2 += (counts[t] - draws * p[t]) * (counts[t] - draws * p[t]) / (draws * p[t]);
  }
  EXPECT_LT(chi2, 16.27);  // 3 degrees of freedom, 0.1 %

  row.params.temperature = 0.5f;  // squares the odds
  counts = row.Draw(draws);
  EXPECT_NEAR(counts[3] / double(counts[0]), 16.0, 2.5);
}

TEST(Sampler, TheTruncationsKeepWhatTheyShould) {
  // Sorted: 2 (0.4), 0 (0.3), 3 (0.2), 1 (0.1).
  Row row(FromProbabilities({0.3, 0.1, 0.4, 0.2}));
  const auto kept = [&](auto set) {
    row.params = SamplingParams();
    set(row.params);
    return Keys(row.Draw(3000));
  };
  using V = std::vector<TokenId>;
  EXPECT_EQ(kept([](SamplingParams& p) { p.top_k = 2; }), (V{0, 2}));
  EXPECT_EQ(kept([](SamplingParams& p) { p.top_k = 9; }), (V{0, 1, 2, 3}));
  EXPECT_EQ(kept([](SamplingParams& p) { p.top_p = 0.65f; }), (V{0, 2}));
  EXPECT_EQ(kept([](SamplingParams& p) { p.top_p = 0.75f; }), (V{0, 2, 3}));
  EXPECT_EQ(kept([](SamplingParams& p) { p.top_p = 0.0f; }), (V{2}));
  EXPECT_EQ(kept([](SamplingParams& p) { p.top_p = 1e-9f; }), (V{2}));
  EXPECT_EQ(kept([](SamplingParams& p) { p.min_p = 0.45f; }), (V{0, 2, 3}));
  EXPECT_EQ(kept([](SamplingParams& p) { p.min_p = 1.0f; }), (V{2}));
  // top_p counts the mass that top_k left: 0.4 / 0.7 covers a half.
  EXPECT_EQ(kept([](SamplingParams& p) {
              p.top_k = 2;
              p.top_p = 0.5f;
            }),
            (V{2}));
  // Temperature comes last: it changes no set.
  EXPECT_EQ(kept([](SamplingParams& p) {
              p.top_p = 0.65f;
              p.temperature = 5.0f;
            }),
            (V{0, 2}));
}

TEST(Sampler, TruncationsAgreeWithASortOnALargeVocabulary) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> logits(5000);
  for (float& logit : logits) logit = normal(random);
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  double total = 0;
  for (float logit : logits) total += std::exp(double(logit));
  double mass = 0;
  size_t keep = 0;
  while (mass < 0.8 * total) mass += std::exp(double(logits[order[keep++]]));
  std::vector<bool> allowed(logits.size());
  for (size_t i = 0; i < keep; ++i) allowed[order[i]] = true;

  Row row(logits);
  row.params.top_p = 0.8f;
  row.params.temperature = 50.0f;  // spreads the draws over the whole set
  for (const auto& [id, count] : row.Draw(300)) EXPECT_TRUE(allowed[id]) << id;
}

TEST(Sampler, ADrawDependsOnSeedStreamAndPositionAlone) {
  std::vector<float> logits(1000, 0.0f);
  Row row(logits);
  row.params.seed = 42;
  const TokenId token = row.Sample().token;
  EXPECT_EQ(row.Sample().token, token);
  row.params.stream = 1;
  EXPECT_NE(row.Sample().token, token);
  row.params.stream = 0;
  row.sequence.push_back(3);
  EXPECT_NE(row.Sample().token, token);
}

TEST(Sampler, PenaltiesFollowTheirFormulas) {
  Row row({2.0f, -1.0f, 1.5f, 0.0f});
  row.params.temperature = 0.0f;
  row.sequence = {0, 1, 2};
  row.prompt_tokens = 2;
  row.params.logprobs = 0;
  // Repetition: 2 / 1.5 falls below 1.5 / 1.0? both are seen: 1.33 and 1.0; token 0 stays the best.
  row.params.repetition_penalty = 1.5f;
  EXPECT_EQ(row.Sample().token, 0);
  row.params.repetition_penalty = 1.0f;
  row.params.presence_penalty = 2.0f;  // over the output only: token 2
  EXPECT_EQ(row.Sample().token, 0);
  row.prompt_tokens = 0;  // now 0, 1 and 2 are output: 0.0, -3.0, -0.5, 0.0
  EXPECT_EQ(row.Sample().token, 0);
  row.params.presence_penalty = 0.0f;
  row.sequence = {0, 0, 0, 2};
  row.params.frequency_penalty = 0.5f;  // 2 - 1.5 = 0.5; 1.5 - 0.5 = 1.0
  EXPECT_EQ(row.Sample().token, 2);
  // A negative logit is multiplied, so that a repeat never gains.
  Row negative({-1.0f, -1.2f});
  negative.params.temperature = 0.0f;
  negative.params.repetition_penalty = 1.5f;
  EXPECT_EQ(negative.Sample().token, 1);
}

TEST(Sampler, BiasBansAndMasksDecideWhatMayBeDrawn) {
  Row row({5.0f, 4.0f, 3.0f, 2.0f});
  row.params.temperature = 0.0f;
  row.banned = {0};
  EXPECT_EQ(row.Sample().token, 1);
  row.mask = {0b1100};
  EXPECT_EQ(row.Sample().token, 2);
  row.params.logit_bias = {{3, 100.0f}};
  EXPECT_EQ(row.Sample().token, 3);
  row.mask = {0b0001};
  EXPECT_EQ(row.Sample().status.code(), StatusCode::kFailedPrecondition);
}

TEST(Sampler, LogprobsAreOfTheRawDistributionAtEverySetting) {
  Row row(FromProbabilities({0.1, 0.2, 0.3, 0.4}));
  row.params.logprobs = 2;
  row.params.temperature = 0.2f;
  row.params.top_k = 1;
  row.params.logit_bias = {{0, 50.0f}};
  const RowOutput output = row.Sample();
  EXPECT_EQ(output.token, 0);
  EXPECT_NEAR(output.logprobs.logprob, std::log(0.1), 1e-6);
  ASSERT_EQ(output.logprobs.top.size(), 2u);
  EXPECT_EQ(output.logprobs.top[0].id, 3);
  EXPECT_NEAR(output.logprobs.top[0].logprob, std::log(0.4), 1e-6);
  EXPECT_EQ(output.logprobs.top[1].id, 2);
}

TEST(Sampler, NonFiniteLogitsFailTheRow) {
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Row row({0.0f, bad, 1.0f});
    EXPECT_EQ(row.Sample().status.code(), StatusCode::kInternal);
  }
}

TEST(Sampler, WhenNoTokenIsLeftTheFieldIsNamed) {
  Row row({0.0f, 1.0f});
  row.banned = {0, 1};
  const Status banned = row.Sample().status;
  EXPECT_EQ(banned.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(banned.param(), "stop_token_ids");
  row.params.logit_bias = {{0, 1.0f}};
  EXPECT_EQ(row.Sample().status.param(), "logit_bias");
  Row other({0.0f, 1.0f});
  other.mask = {0};
  const Status masked = other.Sample().status;
  EXPECT_EQ(masked.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(masked.param(), "");
}

TEST(Logprobs, TopIsATotalOrder) {
  std::vector<float> logits = {1.0f, 2.0f, 2.0f, 0.0f, 2.0f};
  const LogNormalizer normalizer = Normalize(kernels::Table().elementwise, logits);
  PositionLogprobs out;
  ASSERT_TRUE(FillLogprobs(normalizer, logits, 3, 4, &out).ok());
  std::vector<TokenId> ids;
  for (const TokenLogprob& entry : out.top) ids.push_back(entry.id);
  EXPECT_EQ(ids, (std::vector<TokenId>{1, 2, 4, 0}));
  EXPECT_EQ(out.token, 3);
}

TEST(Logprobs, LogitsThatAreNotFiniteAreAnError) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto fill = [](std::vector<float> logits, TokenId token, int32_t top) {
    PositionLogprobs out;
    const LogNormalizer normalizer = Normalize(kernels::Table().elementwise, logits);
    return FillLogprobs(normalizer, logits, token, top, &out).code();
  };
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    EXPECT_EQ(fill({0.0f, bad, 1.0f}, -1, 0), StatusCode::kInternal);
    EXPECT_EQ(fill({0.0f, bad, 1.0f}, 0, 1), StatusCode::kInternal);
  }
  EXPECT_EQ(fill({-kInfinity, -kInfinity}, -1, 0), StatusCode::kInternal);
  EXPECT_EQ(fill({0.0f, -kInfinity, 1.0f}, 1, 1), StatusCode::kInternal);
  EXPECT_EQ(fill({0.0f, -kInfinity, 1.0f}, 0, 3), StatusCode::kInternal);
  EXPECT_EQ(fill({0.0f, -kInfinity, 1.0f}, 0, 2), StatusCode::kOk);
}

}  // namespace
}  // namespace lockstep
