#include "model/layers/latent_attention.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

constexpr int32_t kTokensWorthSharing = 8;
constexpr int32_t kMostHeadsOfAPart = 32;  // as many rows as make good use of a widened block

// Room for [heads][tokens, k].
Result<kernels::QuantizedRows> AllocateCodes(Arena* arena, int32_t heads, int32_t tokens,
                                             int32_t k) {
  constexpr const char* kWhat = "activations";
  const size_t rows = size_t(heads) * tokens;
  const size_t groups = rows * (k / kernels::kActGroup);
  kernels::QuantizedRows q;
  q.k = k;
  LOCKSTEP_ASSIGN_OR_RETURN(q.codes, arena->Take<int8_t>(rows * k, kWhat));
  LOCKSTEP_ASSIGN_OR_RETURN(q.scales, arena->Take<float>(groups, kWhat));
  LOCKSTEP_ASSIGN_OR_RETURN(q.sums, arena->Take<int32_t>(groups, kWhat));
  return q;
}

// The rows of one head.
kernels::QuantizedRows OfHead(const kernels::QuantizedRows& all, int32_t head, int32_t tokens) {
  if (all.codes == nullptr) return all;
  const int64_t first = int64_t{head} * tokens;
  const int64_t groups = all.k / kernels::kActGroup;
  return {all.codes + first * all.k, all.scales + first * groups, all.sums + first * groups, all.k};
}

// A product a head: head h's input is [T, k] at x + h * x_head, its output [T, n] at out + h *
// out_head.
struct HeadProduct {
  const HeadLinears* linears = nullptr;
  const float* x = nullptr;
  int64_t x_head = 0;
  int64_t x_stride = 0;
  float* out = nullptr;
  int64_t out_head = 0;
  int64_t out_stride = 0;
};

void MultiplyHeads(const HeadProduct& p, int32_t tokens, const kernels::QuantizedRows& codes,
                   Compute* compute) {
  const int32_t heads = static_cast<int32_t>(p.linears->size());
  const auto activations = [&](int32_t head) {
    Activations x;
    x.f32 = const_cast<float*>(p.x) + head * p.x_head;
    x.stride = p.x_stride;
    x.quantized = OfHead(codes, head, tokens);
    x.k = p.linears->front().matrix.k;
    return x;
  };
  if (p.linears->front().integer()) {
    compute->pool().ParallelFor(heads, [&](int32_t head, int32_t) {
      const Activations x = activations(head);
      compute->kernels().gemm.quantize(x.f32, x.stride, 0, tokens, x.quantized);
    });
  }
  const int32_t panels = p.linears->front().matrix.panels();
  const int32_t wanted = kItemsPerThread * compute->threads();
  const int32_t piece = std::clamp(heads * panels / wanted, std::min(kMinPanels, panels), panels);
  const int32_t pieces = (panels + piece - 1) / piece;
  const int32_t row_tiles = (tokens + kRowTile - 1) / kRowTile;
  compute->pool().ParallelFor(heads * pieces * row_tiles, [&](int32_t item, int32_t worker) {
    const int32_t row = item % row_tiles * kRowTile;
    const int32_t panel = item / row_tiles % pieces * piece;
    const int32_t head = item / row_tiles / pieces;
    const kernels::GemmRange range{row, std::min(tokens, row + kRowTile), panel,
                                   std::min(panels, panel + piece)};
    MultiplyRange(activations(head), (*p.linears)[head], range, false, p.out + head * p.out_head,
                  p.out_stride, compute, worker);
  });
}

}  // namespace

AttentionShape LatentShape(const LatentDims& dims, float scale) {
  int32_t parts = (dims.heads + kMostHeadsOfAPart - 1) / kMostHeadsOfAPart;
  while (dims.heads % parts != 0) ++parts;
  return {.heads = dims.heads,
          .kv_heads = parts,
          .head_dim = dims.key(),
          .scale = scale,
          .latent_dim = dims.rank};
}

void LatentNeeds::Add(const LatentAttention& a, const AttentionShape& shape, DecoderNeeds* needs) {
  const auto scratch = [&](const Linear& linear) {
    needs->scratch = std::max(needs->scratch, kernels::GemmScratchBytes(linear.matrix));
  };
  needs->AddReaderOfNormed(a.down);
  if (a.query_norm.empty()) {
    needs->AddReaderOfNormed(a.query);
  } else {
    needs->AddReaderOfNormed(a.query_down);
    query_codes = query_codes || a.query.integer();
    scratch(a.query);
  }
  plain_codes = plain_codes || a.absorb_key.front().integer();
  mean_codes = mean_codes || a.expand.front().integer();
  needs->attended_codes = needs->attended_codes || a.out.integer();
  for (const Linear* linear : {&a.absorb_key.front(), &a.expand.front(), &a.out}) scratch(*linear);
  needs->scratch =
      std::max(needs->scratch, kernels::AttentionScratchBytes(shape.head_dim, shape.group()));
}

Result<LatentAttention::Buffers> LatentAttention::Buffers::Allocate(Arena* arena, int32_t tokens,
                                                                    const LatentDims& dims,
                                                                    const LatentNeeds& needs) {
  constexpr const char* kWhat = "activations";
  Buffers l;
  if (dims.query_rank > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        l.query_latent, Activations::Allocate(arena, tokens, dims.query_rank, needs.query_codes));
  }
  l.latent_stride = PaddedOutputs(dims.key());
  const size_t rows = size_t(tokens);
  LOCKSTEP_ASSIGN_OR_RETURN(l.latent, arena->Take<float>(rows * l.latent_stride, kWhat));
  LOCKSTEP_ASSIGN_OR_RETURN(l.absorbed, arena->Take<float>(rows * dims.heads * dims.key(), kWhat));
  LOCKSTEP_ASSIGN_OR_RETURN(l.means, arena->Take<float>(rows * dims.heads * dims.rank, kWhat));
  if (needs.plain_codes) {
    LOCKSTEP_ASSIGN_OR_RETURN(l.plain, AllocateCodes(arena, dims.heads, tokens, dims.plain));
  }
  if (needs.mean_codes) {
    LOCKSTEP_ASSIGN_OR_RETURN(l.of_means, AllocateCodes(arena, dims.heads, tokens, dims.rank));
  }
  return l;
}

void LatentAttention::Run(const LatentDims& dims, const Place& place, Buffers* l, DecoderBuffers* b,
                          Compute* compute) const {
  const auto& elementwise = compute->kernels().elementwise;
  const Batch& batch = *place.batch;
  const RopeTable& rope = *place.rope;
  const int32_t tokens = batch.size();
  const Product latents{&down, l->latent, l->latent_stride};
  if (query_norm.empty()) {
    const Product products[] = {{&query, b->q, b->q_stride}, latents};
    Multiply(b->normed, tokens, products, compute);
  } else {
    const int64_t stride = l->query_latent.stride;
    const Product products[] = {{&query_down, l->query_latent.f32, stride}, latents};
    Multiply(b->normed, tokens, products, compute);
    query_norm.Apply(l->query_latent.f32, stride, tokens, compute, &l->query_latent);
    const Product queries[] = {{&query, b->q, b->q_stride}};
    Multiply(l->query_latent, tokens, queries, compute);
  }

  const int64_t absorbed_stride = int64_t{dims.heads} * dims.key();
  MultiplyHeads({.linears = &absorb_key,
                 .x = b->q,
                 .x_head = dims.query(),
                 .x_stride = b->q_stride,
                 .out = l->absorbed,
                 .out_head = dims.key(),
                 .out_stride = absorbed_stride},
                tokens, l->plain, compute);
  ForRows(compute, tokens, kTokensWorthSharing, [&](int32_t first, int32_t last) {
    batch.ForTokens(first, last, [&](int32_t t, const BatchRow& row) {
      const float* q = b->q + t * b->q_stride + dims.plain;
      float* to = l->absorbed + t * absorbed_stride + dims.rank;
      for (int32_t h = 0; h < dims.heads; ++h, q += dims.query(), to += dims.key()) {
        std::memcpy(to, q, sizeof(float) * dims.rope);
        elementwise.rope(to, rope.cosines(t), rope.sines(t), rope.half());
      }
      float* latent = l->latent + t * l->latent_stride;
      norm.ApplyToHead(elementwise, latent);
      elementwise.rope(latent + dims.rank, rope.cosines(t), rope.sines(t), rope.half());
      compute->kernels().attention.append(*place.cache, row.block_tables[place.group].data(),
                                          batch.positions[t], 0, latent, nullptr);
    });
  });
  const int64_t means_stride = int64_t{dims.heads} * dims.rank;
  AttendCached(batch, *place.plan, *place.cache, place.group, l->absorbed, absorbed_stride,
               l->means, means_stride, compute);
  MultiplyHeads({.linears = &expand,
                 .x = l->means,
                 .x_head = dims.rank,
                 .x_stride = means_stride,
                 .out = b->attended.f32,
                 .out_head = dims.value,
                 .out_stride = b->attended.stride},
                tokens, l->of_means, compute);
  b->attended.Quantize(tokens, compute);
}

}  // namespace lockstep
