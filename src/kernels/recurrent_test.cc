// Every table against double-precision references, the tables' bits against each other, and a
// sequence in one piece against the same in any pieces.
#include "kernels/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace lockstep::kernels {
namespace {

std::vector<float> Random(size_t n, float low, float high, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> x(n);
  for (float& v : x) v = uniform(random);
  return x;
}

class EveryTable : public testing::TestWithParam<const KernelTable*> {
 protected:
  const RecurrentKernels& kernels() const { return GetParam()->recurrent; }
};

INSTANTIATE_TEST_SUITE_P(Isa, EveryTable, testing::ValuesIn(SupportedTables()),
                         [](const auto& suite) { return std::string(suite.param->isa); });

TEST_P(EveryTable, ShortConv) {
  for (const int32_t taps : {2, 4, 5}) {
    for (const int32_t n : {1, 15, 16, 40, 64}) {
      const std::vector<float> x = Random(size_t(taps) * n, -3, 3, taps);
      const int64_t stride = n + 3;
      const std::vector<float> weights = Random(size_t(taps) * stride, -1, 1, n);
      std::vector<const float*> rows;
      for (int32_t j = 0; j < taps; ++j) rows.push_back(x.data() + int64_t{j} * n);
      std::vector<float> out(n + 1, 7.0f);
      kernels().short_conv(rows.data(), weights.data(), stride, taps, n, out.data());
      std::vector<float> scalar(n);
      SupportedTables().back()->recurrent.short_conv(rows.data(), weights.data(), stride, taps, n,
                                                     scalar.data());
      for (int32_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int32_t j = 0; j < taps; ++j) sum += double{weights[j * stride + i]} * rows[j][i];
        EXPECT_NEAR(out[i], sum / (1 + std::exp(-sum)), 2e-6) << taps << ", " << n << ", " << i;
        EXPECT_EQ(out[i], scalar[i]);
      }
      EXPECT_EQ(out[n], 7.0f);
    }
  }
}

// A sequence by one head, its tensors with gaps between the tokens.
struct Sequence {
  int32_t tokens, k_dim, v_dim;
  int64_t stride = 2 * k_dim + v_dim + 5;
  std::vector<float> qkv = Random(tokens * stride, -0.5f, 0.5f, 1);
  std::vector<float> gates = Random(tokens * 3, 0, 1, 2);
  std::vector<float> first_state = Random(int64_t{k_dim} * v_dim, -1, 1, 3);

  DeltaRuleSpan Span(int32_t begin, int32_t count, const float* state, float* new_state,
                     float* out) const {
    const float* x = qkv.data() + begin * stride;
    return {.q = x,
            .k = x + k_dim,
            .v = x + 2 * k_dim,
            .stride = stride,
            .decay = gates.data() + begin * 3,
            .beta = gates.data() + begin * 3 + 1,
            .gate_stride = 3,
            .tokens = count,
            .k_dim = k_dim,
            .v_dim = v_dim,
            .state = state,
            .new_state = new_state,
            .out = out + int64_t{begin} * v_dim,
            .out_stride = v_dim};
  }
};

struct Computed {
  std::vector<float> out;
  std::vector<float> state;
  bool operator==(const Computed&) const = default;
};

// In pieces of `piece` tokens, from one state to another and back, as the caches do it.
Computed Compute(const RecurrentKernels& kernels, const Sequence& s, bool from_zeros,
                 int32_t piece) {
  Computed c;
  c.out.resize(size_t(s.tokens) * s.v_dim);
  c.state = s.first_state;
  std::vector<float> other(c.state.size(), NAN);
  for (int32_t t = 0; t < s.tokens; t += piece) {
    const float* state = from_zeros && t == 0 ? nullptr : c.state.data();
    kernels.delta_rule(s.Span(t, std::min(piece, s.tokens - t), state, other.data(), c.out.data()));
    std::swap(c.state, other);
  }
  return c;
}

// The recurrence as the paper has it, in double.
void ExpectNearReference(const Sequence& s, bool from_zeros, const Computed& got) {
  std::vector<double> state(size_t(s.k_dim) * s.v_dim, 0.0);
  const auto at = [&](int32_t i, int32_t c) {
    return (int64_t{c / kStatePanel} * s.k_dim + i) * kStatePanel + c % kStatePanel;
  };
  for (size_t i = 0; !from_zeros && i < state.size(); ++i) state[i] = s.first_state[i];
  for (int32_t t = 0; t < s.tokens; ++t) {
    const float* q = s.qkv.data() + t * s.stride;
    const float* k = q + s.k_dim;
    const float* v = k + s.k_dim;
    const double decay = s.gates[t * 3];
    const double beta = s.gates[t * 3 + 1];
    for (int32_t c = 0; c < s.v_dim; ++c) {
      double seen = 0;
      for (int32_t i = 0; i < s.k_dim; ++i) seen += decay * state[at(i, c)] * k[i];
      double read = 0;
      for (int32_t i = 0; i < s.k_dim; ++i) {
        double& cell = state[at(i, c)];
        cell = decay * cell + k[i] * beta * (v[c] - seen);
        read += cell * q[i];
      }
      EXPECT_NEAR(got.out[int64_t{t} * s.v_dim + c], read, 1e-5) << t << ", " << c;
    }
  }
  for (size_t i = 0; i < state.size(); ++i) EXPECT_NEAR(got.state[i], state[i], 1e-5) << i;
}

TEST_P(EveryTable, DeltaRule) {
  for (const bool from_zeros : {false, true}) {
    for (const auto& [k_dim, v_dim] : {std::pair{4, 16}, {12, 48}, {64, 32}}) {
      const Sequence s{.tokens = 20, .k_dim = k_dim, .v_dim = v_dim};
      const Computed whole = Compute(kernels(), s, from_zeros, s.tokens);
      ExpectNearReference(s, from_zeros, whole);
      for (const int32_t piece : {1, 3, 7}) {
        EXPECT_EQ(Compute(kernels(), s, from_zeros, piece) == whole, true) << piece;
      }
      EXPECT_EQ(Compute(SupportedTables().back()->recurrent, s, from_zeros, s.tokens) == whole,
                true);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
