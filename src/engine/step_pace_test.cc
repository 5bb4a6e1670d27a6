#include "engine/step_pace.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// A machine whose steps cost so much to begin with, and so much a prompt token.
struct Machine {
  double decode;
  double token;
  double Step(int32_t decoding, int32_t tokens) const {
    return (decoding > 0 ? decode : 0) + token * tokens;
  }
};

// The longest step of `machine` once the pace had `settled` steps to learn.
double LongestStep(const Machine& machine, StepPace* pace, int settled, int steps) {
  double longest = 0;
  for (int i = 0; i < settled + steps; ++i) {
    const int32_t tokens = pace->PromptTokens();
    const double seconds = machine.Step(8, tokens);
    if (i >= settled) longest = std::max(longest, seconds);
    pace->Observe(8, tokens, seconds);
  }
  return longest;
}

TEST(StepPace, WithoutABudgetAStepTakesAllThatFits) {
  StepPace pace(0, 512);
  pace.Observe(8, 512, 100);
  EXPECT_EQ(pace.PromptTokens(), 512);
}

TEST(StepPace, StepsKeepToTheBudget) {
  StepPace pace(0.050, 512);
  const Machine machine{0.010, 0.001};
  pace.Observe(8, 0, machine.decode);
  EXPECT_LE(LongestStep(machine, &pace, 1, 100), 0.050);
  EXPECT_EQ(pace.PromptTokens(), 40);
}

TEST(StepPace, WhatIdlePromptsCostIsKnownBeforeRowsDecode) {
  StepPace pace(0.050, 512);
  pace.Observe(0, 512, 5.12);
  EXPECT_EQ(pace.PromptTokens(), 8);  // 5 would fit
  pace.Observe(0, 512, 0.0512);
  for (int i = 0; i < 20; ++i) pace.Observe(0, 512, 0.0512);
  EXPECT_NEAR(pace.PromptTokens(), 499, 2);
}

TEST(StepPace, PromptsGetHalfOfAMachineThatDecodesSlowly) {
  StepPace pace(0.050, 512);
  const Machine machine{0.200, 0.005};
  pace.Observe(8, 0, machine.decode);
  EXPECT_LE(LongestStep(machine, &pace, 1, 100), 0.400);
  EXPECT_EQ(pace.PromptTokens(), 40);
}

TEST(StepPace, OneStepThatWasHeldUpIsSoonForgotten) {
  StepPace pace(0.050, 512);
  const Machine machine{0.010, 0.001};
  pace.Observe(8, 0, machine.decode);
  LongestStep(machine, &pace, 10, 0);
  pace.Observe(8, 40, 10.0);
  EXPECT_LT(pace.PromptTokens(), 40);
  LongestStep(machine, &pace, 8, 0);
  EXPECT_NEAR(pace.PromptTokens(), 40, 1);
}

TEST(StepPace, NeverMoreThanAStepTakesNorNothing) {
  StepPace pace(0.001, 4);
  EXPECT_EQ(pace.PromptTokens(), 4);
  pace.Observe(8, 4, 1000);
  EXPECT_EQ(pace.PromptTokens(), 4);
}

}  // namespace
}  // namespace lockstep
