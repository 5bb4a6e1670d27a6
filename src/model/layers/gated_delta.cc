#include "model/layers/gated_delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/real_math.h"
#include "kernels/recurrent.h"

namespace lockstep {
namespace {

constexpr int32_t kPieceTokens = 32;  // tokens of an item of the convolution
constexpr double kNormEps = 1e-6;
// Beyond it e^-x is nothing beside 1, and below minus it nothing at all.
constexpr double kLargest = 80.0;

double Sigmoid(double x) {
  if (x != x) return x;
  return 1.0 / (1.0 + RealExp(-std::clamp(x, -kLargest, kLargest)));
}

double Softplus(double x) {
  if (!(x < kLargest)) return x;
  return RealLog(1.0 + RealExp(std::max(x, -kLargest)));
}

// e^-x for x >= 0.
double Decay(double x) {
  if (x != x) return x;
  return x > kLargest ? 0.0 : RealExp(-x);
}

}  // namespace

RmsNorm UnitNorm(int32_t n, double factor) {
  // x / sqrt(mean + eps / n) / sqrt(n).
  return RmsNorm(std::vector<float>(n, static_cast<float>(factor / std::sqrt(double{1} * n))),
                 static_cast<float>(kNormEps / n));
}

Result<GatedDeltaBuffers> GatedDeltaBuffers::Allocate(Arena* arena, int32_t tokens,
                                                      const GatedDeltaDims& dims, bool out_codes) {
  const auto rows_of = [&](int64_t width) {
    return arena->Take<float>(size_t(tokens) * width, "activations");
  };
  GatedDeltaBuffers g;
  LOCKSTEP_ASSIGN_OR_RETURN(g.qkv, rows_of(dims.conv_size()));
  LOCKSTEP_ASSIGN_OR_RETURN(g.mixed, rows_of(dims.conv_size()));
  LOCKSTEP_ASSIGN_OR_RETURN(g.z, rows_of(dims.value_size()));
  LOCKSTEP_ASSIGN_OR_RETURN(g.b, rows_of(PaddedOutputs(dims.v_heads)));
  LOCKSTEP_ASSIGN_OR_RETURN(g.a, rows_of(PaddedOutputs(dims.v_heads)));
  LOCKSTEP_ASSIGN_OR_RETURN(g.beta, rows_of(dims.v_heads));
  LOCKSTEP_ASSIGN_OR_RETURN(g.decay, rows_of(dims.v_heads));
  LOCKSTEP_ASSIGN_OR_RETURN(g.zeros, arena->Take<float>(dims.conv_size(), "activations"));
  std::fill_n(g.zeros, dims.conv_size(), 0.0f);
  LOCKSTEP_ASSIGN_OR_RETURN(g.out,
                            Activations::Allocate(arena, tokens, dims.value_size(), out_codes));
  return g;
}

void GatedDelta::Run(const Place& place, const Activations& normed, GatedDeltaBuffers* g,
                     Compute* compute) const {
  const int32_t tokens = place.batch->size();
  const int64_t gate_stride = PaddedOutputs(dims.v_heads);
  const Product in[] = {{&qkv, g->qkv, dims.conv_size()},
                        {&z, g->z, dims.value_size()},
                        {&b, g->b, gate_stride},
                        {&a, g->a, gate_stride}};
  Multiply(normed, tokens, in, compute);
  Convolve(place, g, compute);
  Recur(place, g, compute);
  g->out.Quantize(tokens, compute);
}

void GatedDelta::SetGates(int32_t t, int32_t k_head, GatedDeltaBuffers* g) const {
  const int64_t padded = int64_t{t} * PaddedOutputs(dims.v_heads);
  const int64_t dense = int64_t{t} * dims.v_heads;
  const int32_t first = k_head * dims.heads_a_key();
  for (int32_t h = first; h < first + dims.heads_a_key(); ++h) {
    g->beta[dense + h] = static_cast<float>(Sigmoid(g->b[padded + h]));
    g->decay[dense + h] =
        static_cast<float>(Decay(decay_rate[h] * Softplus(g->a[padded + h] + dt_bias[h])));
  }
}

void GatedDelta::Convolve(const Place& place, GatedDeltaBuffers* g, Compute* compute) const {
  const Batch& batch = *place.batch;
  const int32_t size = dims.conv_size();
  const int32_t tail = dims.taps - 1;
  struct Channels {
    int32_t first, count;
  };
  const auto piece = [&](int32_t begin, int32_t end, int32_t k_head) {
    const int32_t value_channels = dims.heads_a_key() * dims.v_dim;
    const Channels q{k_head * dims.k_dim, dims.k_dim};
    const Channels k{dims.key_size() + k_head * dims.k_dim, dims.k_dim};
    const Channels v{2 * dims.key_size() + k_head * value_channels, value_channels};
    batch.ForTokens(begin, end, [&](int32_t t, const BatchRow& row) {
      const std::span<const BlockId> table = row.block_tables[place.group];
      // The convolution's input of the row's token `j`; those before 0 are of earlier steps.
      const auto input = [&](int32_t j) -> const float* {
        if (j >= 0) return g->qkv + int64_t{row.first + j} * size;
        if (table[0] == kNoBlock) return g->zeros;
        return place.states.block(table[0]) + int64_t{tail + j} * size;
      };
      const int32_t j = t - row.first;
      float* mixed = g->mixed + int64_t{t} * size;
      for (const Channels& part : {q, k, v}) {
        const float* inputs[GatedDeltaDims::kMaxTaps];
        for (int32_t i = 0; i < dims.taps; ++i) inputs[i] = input(j - tail + i) + part.first;
        compute->kernels().recurrent.short_conv(inputs, conv.data() + part.first, size, dims.taps,
                                                part.count, mixed + part.first);
        if (j != row.count - 1) continue;
        float* kept = place.states.block(table[1]) + part.first;
        for (int32_t i = 0; i < tail; ++i) {
          std::memcpy(kept + int64_t{i} * size, inputs[i + 1], sizeof(float) * part.count);
        }
      }
      q_norm.ApplyToHead(compute->kernels().elementwise, mixed + q.first);
      k_norm.ApplyToHead(compute->kernels().elementwise, mixed + k.first);
      SetGates(t, k_head, g);
    });
  };
  const int32_t pieces = (batch.size() + kPieceTokens - 1) / kPieceTokens;
  compute->pool().ParallelFor(pieces * dims.k_heads, [&](int32_t item, int32_t) {
    const int32_t begin = item / dims.k_heads * kPieceTokens;
    piece(begin, std::min(batch.size(), begin + kPieceTokens), item % dims.k_heads);
  });
}

void GatedDelta::Recur(const Place& place, GatedDeltaBuffers* g, Compute* compute) const {
  const Batch& batch = *place.batch;
  const int32_t rows = static_cast<int32_t>(batch.rows.size());
  compute->pool().ParallelFor(rows * dims.v_heads, [&](int32_t item, int32_t) {
    const BatchRow& row = batch.rows[item / dims.v_heads];
    const int32_t head = item % dims.v_heads;
    const std::span<const BlockId> table = row.block_tables[place.group];
    const int64_t of_head = dims.tail_floats() + head * dims.head_floats();
    const float* mixed = g->mixed + int64_t{row.first} * dims.conv_size();
    const int32_t k_head = head / dims.heads_a_key();
    kernels::DeltaRuleSpan span;
    span.q = mixed + k_head * dims.k_dim;
    span.k = span.q + dims.key_size();
    span.v = mixed + 2 * dims.key_size() + head * dims.v_dim;
    span.stride = dims.conv_size();
    span.decay = g->decay + int64_t{row.first} * dims.v_heads + head;
    span.beta = g->beta + int64_t{row.first} * dims.v_heads + head;
    span.gate_stride = dims.v_heads;
    span.tokens = row.count;
    span.k_dim = dims.k_dim;
    span.v_dim = dims.v_dim;
    span.state = table[0] == kNoBlock ? nullptr : place.states.block(table[0]) + of_head;
    span.new_state = place.states.block(table[1]) + of_head;
    span.out = g->out.f32 + row.first * g->out.stride + head * dims.v_dim;
    span.out_stride = g->out.stride;
    compute->kernels().recurrent.delta_rule(span);

    const auto& elementwise = compute->kernels().elementwise;
    for (int32_t t = 0; t < row.count; ++t) {
      float* head_out = span.out + t * span.out_stride;
      const float* gate = g->z + int64_t{row.first + t} * dims.value_size() + head * dims.v_dim;
      norm.ApplyToHead(elementwise, head_out);
      elementwise.silu_mul(gate, head_out, dims.v_dim, head_out);
    }
  });
}

}  // namespace lockstep
