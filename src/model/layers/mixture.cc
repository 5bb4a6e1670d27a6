#include "model/layers/mixture.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace lockstep {
namespace {

constexpr int32_t kRowsWorthSharing = 8;

int32_t Panels(int32_t n) { return PaddedOutputs(n) / kernels::kPanel; }

// The `used` greatest scores, in descending order, of equal ones the smaller index first. A NaN is
// never greater; all indices differ in any case.
void PickGreatest(const float* scores, int32_t n, int32_t used, int32_t* chosen) {
  int32_t count = 0;
  for (int32_t e = 0; e < n; ++e) {
    if (count == used && !(scores[e] > scores[chosen[used - 1]])) continue;
    if (count < used) ++count;
    int32_t at = count - 1;
    for (; at > 0 && scores[e] > scores[chosen[at - 1]]; --at) chosen[at] = chosen[at - 1];
    chosen[at] = e;
  }
}

}  // namespace

Result<MixtureBuffers> MixtureBuffers::Allocate(Arena* arena, int32_t tokens,
                                                const DecoderDims& dims, const MixtureDims& mixture,
                                                const DecoderNeeds& needs) {
  constexpr const char* kWhat = "activations of experts";
  const int32_t rows = tokens * mixture.used;
  MixtureBuffers m;
  LOCKSTEP_ASSIGN_OR_RETURN(
      m.scores, arena->Take<float>(size_t(tokens) * PaddedOutputs(mixture.experts), kWhat));
  if (mixture.scoring == Scoring::kSigmoid) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        m.choice, arena->Take<float>(size_t(tokens) * PaddedOutputs(mixture.experts), kWhat));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(m.chosen, arena->Take<int32_t>(rows, kWhat));
  LOCKSTEP_ASSIGN_OR_RETURN(m.weights, arena->Take<float>(rows, kWhat));
  LOCKSTEP_ASSIGN_OR_RETURN(m.row_of, arena->Take<int32_t>(rows, kWhat));
  LOCKSTEP_ASSIGN_OR_RETURN(m.token_of, arena->Take<int32_t>(rows, kWhat));
  LOCKSTEP_ASSIGN_OR_RETURN(m.gathered,
                            Activations::Allocate(arena, rows, dims.d_model, needs.normed_codes));
  LOCKSTEP_ASSIGN_OR_RETURN(
      m.gated, Activations::Allocate(arena, rows, mixture.d_expert, needs.gated_codes));
  LOCKSTEP_ASSIGN_OR_RETURN(
      m.up, arena->Take<float>(size_t(rows) * PaddedOutputs(mixture.d_expert), kWhat));
  LOCKSTEP_ASSIGN_OR_RETURN(m.out,
                            arena->Take<float>(size_t(rows) * PaddedOutputs(dims.d_model), kWhat));
  m.begins.resize(mixture.experts + 1);
  // As many as Cut can make: of every expert each row tile, and of all of them each panel group.
  const int32_t row_tiles = mixture.experts + rows / kRowTile;
  const int32_t panels = std::max(Panels(dims.d_model), Panels(mixture.d_expert));
  m.items.reserve(size_t(row_tiles) * ((panels + kMinPanels - 1) / kMinPanels));
  return m;
}

void Mixture::Run(int32_t tokens, MixtureBuffers* m, DecoderBuffers* b, Compute* compute) const {
  const Product scores[] = {{&router, m->scores, PaddedOutputs(dims.experts)}};
  Multiply(b->normed, tokens, scores, compute);
  Route(tokens, m, compute);
  Gather(tokens, b->normed, m, compute);

  Cut(dims.d_expert, m, compute->threads());
  compute->pool().ParallelFor(
      static_cast<int32_t>(m->items.size()), [&](int32_t i, int32_t worker) {
        const MixtureBuffers::Item& item = m->items[i];
        const GatedFfn& expert = experts[item.expert];
        MultiplyGatedRange(m->gathered, expert.gate, expert.up, expert.activation, item.range,
                           m->gated.f32, m->up, compute, worker);
      });
  m->gated.Quantize(tokens * dims.used, compute);

  const int32_t d_model = b->normed.k;
  Cut(d_model, m, compute->threads());
  compute->pool().ParallelFor(
      static_cast<int32_t>(m->items.size()), [&](int32_t i, int32_t worker) {
        const MixtureBuffers::Item& item = m->items[i];
        MultiplyRange(m->gated, experts[item.expert].down, item.range, false, m->out,
                      PaddedOutputs(d_model), compute, worker);
      });
  AddUp(tokens, m, b, compute);
}

void Mixture::Route(int32_t tokens, MixtureBuffers* m, Compute* compute) const {
  ForRows(compute, tokens, kRowsWorthSharing, [&](int32_t first, int32_t last) {
    for (int32_t t = first; t < last; ++t) {
      float* scores = m->scores + int64_t{t} * PaddedOutputs(dims.experts);
      int32_t* chosen = m->chosen + int64_t{t} * dims.used;
      float* weights = m->weights + int64_t{t} * dims.used;
      if (dims.scoring == Scoring::kSigmoid) {
        float* choice = m->choice + int64_t{t} * PaddedOutputs(dims.experts);
        RouteBySigmoid(scores, choice, chosen, weights, compute);
      } else {
        RouteBySoftmax(scores, chosen, weights, compute);
      }
    }
  });
}

// Softmax over all experts; the weights of those picked, which may be made to add up to 1.
void Mixture::RouteBySoftmax(float* scores, int32_t* chosen, float* weights,
                             Compute* compute) const {
  const auto& elementwise = compute->kernels().elementwise;
  PickGreatest(scores, dims.experts, dims.used, chosen);
  const float max = elementwise.max(scores, dims.experts).value;
  float sum = elementwise.sum_exp(scores, max, dims.experts);
  elementwise.exp(scores, max, 1.0f, dims.experts, scores);
  if (dims.normalised) {
    sum = 0.0f;
    for (int32_t i = 0; i < dims.used; ++i) sum += scores[chosen[i]];
  }
  for (int32_t i = 0; i < dims.used; ++i) weights[i] = scores[chosen[i]] / sum;
}

// The scores' sigmoids, with the correction for the choice and without it for the weights. Of the
// groups, those with the greatest sums of their best two take part.
void Mixture::RouteBySigmoid(float* scores, float* choice, int32_t* chosen, float* weights,
                             Compute* compute) const {
  compute->kernels().elementwise.exp(scores, 0.0f, -1.0f, dims.experts, choice);
  for (int32_t e = 0; e < dims.experts; ++e) {
    scores[e] = 1.0f / (1.0f + choice[e]);
    choice[e] = scores[e] + correction[e];
  }
  if (dims.groups > 1) {
    const int32_t size = dims.experts / dims.groups;
    float sums[kMaxExpertGroups];
    int32_t best[kMaxExpertGroups];
    for (int32_t g = 0; g < dims.groups; ++g) {
      int32_t two[2];
      const float* of_group = choice + g * size;
      PickGreatest(of_group, size, 2, two);
      sums[g] = of_group[two[0]] + of_group[two[1]];
    }
    PickGreatest(sums, dims.groups, dims.used_groups, best);
    bool taken[kMaxExpertGroups] = {};
    for (int32_t i = 0; i < dims.used_groups; ++i) taken[best[i]] = true;
    for (int32_t e = 0; e < dims.experts; ++e) {
      if (!taken[e / size]) choice[e] = -std::numeric_limits<float>::infinity();
    }
  }
  PickGreatest(choice, dims.experts, dims.used, chosen);
  float sum = 1.0f;
  if (dims.normalised) {
    sum = 1e-20f;
    for (int32_t i = 0; i < dims.used; ++i) sum += scores[chosen[i]];
  }
  for (int32_t i = 0; i < dims.used; ++i) weights[i] = scores[chosen[i]] / sum * dims.scale;
}

void Mixture::Gather(int32_t tokens, const Activations& normed, MixtureBuffers* m,
                     Compute* compute) const {
  const int32_t rows = tokens * dims.used;
  std::fill(m->begins.begin(), m->begins.end(), 0);
  for (int32_t i = 0; i < rows; ++i) ++m->begins[m->chosen[i] + 1];
  for (int32_t e = 0; e < dims.experts; ++e) m->begins[e + 1] += m->begins[e];
  // begins[e] runs on to the beginning of e + 1 while rows are handed out, and is set back after.
  for (int32_t i = 0; i < rows; ++i) {
    const int32_t row = m->begins[m->chosen[i]]++;
    m->row_of[i] = row;
    m->token_of[row] = i / dims.used;
  }
  for (int32_t e = dims.experts; e > 0; --e) m->begins[e] = m->begins[e - 1];
  m->begins[0] = 0;

  const kernels::QuantizedRows& from = normed.quantized;
  const kernels::QuantizedRows& to = m->gathered.quantized;
  const int64_t groups = normed.k / kernels::kActGroup;
  ForRows(compute, rows, kRowsWorthSharing, [&](int32_t first, int32_t last) {
    for (int32_t row = first; row < last; ++row) {
      const int64_t token = m->token_of[row];
      std::memcpy(m->gathered.f32 + row * m->gathered.stride, normed.f32 + token * normed.stride,
                  sizeof(float) * normed.k);
      if (to.codes == nullptr) continue;
      std::memcpy(to.codes + int64_t{row} * normed.k, from.codes + token * normed.k, normed.k);
      std::memcpy(to.scales + row * groups, from.scales + token * groups, sizeof(float) * groups);
      std::memcpy(to.sums + row * groups, from.sums + token * groups, sizeof(int32_t) * groups);
    }
  });
}

void Mixture::Cut(int32_t n, MixtureBuffers* m, int32_t threads) const {
  m->items.clear();
  const int32_t panels = Panels(n);
  int32_t busy = 0;
  for (int32_t e = 0; e < dims.experts; ++e) busy += m->begins[e + 1] > m->begins[e] ? 1 : 0;
  const int32_t piece = std::max(kMinPanels, busy * panels / (kItemsPerThread * threads));
  for (int32_t e = 0; e < dims.experts; ++e) {
    for (int32_t panel = 0; panel < panels; panel += piece) {
      for (int32_t row = m->begins[e]; row < m->begins[e + 1]; row += kRowTile) {
        m->items.push_back({e,
                            {row, std::min(m->begins[e + 1], row + kRowTile), panel,
                             std::min(panels, panel + piece)}});
      }
    }
  }
}

void Mixture::AddUp(int32_t tokens, MixtureBuffers* m, DecoderBuffers* b, Compute* compute) const {
  const auto& elementwise = compute->kernels().elementwise;
  const int32_t d_model = b->normed.k;
  const int64_t stride = PaddedOutputs(d_model);
  ForRows(compute, tokens, kRowsWorthSharing, [&](int32_t first, int32_t last) {
    for (int32_t t = first; t < last; ++t) {
      const int64_t choice = int64_t{t} * dims.used;
      float* sum = m->out + m->row_of[choice] * stride;
      for (int32_t i = 0; i < dims.used; ++i) {
        float* row = m->out + m->row_of[choice + i] * stride;
        elementwise.scale(m->weights[choice + i], d_model, row);
        if (i > 0) elementwise.add(row, d_model, sum);
      }
      elementwise.add(sum, d_model, b->x + t * b->x_stride);
    }
  });
}

}  // namespace lockstep
