#include "model/layers/self_attention.h"

namespace lockstep {
namespace {

constexpr int32_t kRowsWorthSharing = 8;

void ApplyGates(int32_t tokens, DecoderBuffers* b, Compute* compute) {
  const int32_t width = b->attended.k;
  ForRows(compute, tokens, kRowsWorthSharing, [&](int32_t first, int32_t last) {
    for (int32_t t = first; t < last; ++t) {
      float* row = b->attended.f32 + t * b->attended.stride;
      compute->kernels().elementwise.sigmoid_mul(b->q + t * b->q_stride + width, row, width, row);
    }
  });
}

}  // namespace

void SelfAttention::Run(const Place& place, DecoderBuffers* b, Compute* compute) const {
  const int32_t tokens = place.batch->size();
  const Product qkv[] = {
      {&q, b->q, b->q_stride}, {&k, b->k, b->kv_stride}, {&v, b->v, b->kv_stride}};
  Multiply(b->normed, tokens, qkv, compute);
  const Projections projections{b->q, b->k, b->v, b->q_stride, b->kv_stride, &q_norm, &k_norm};
  Attend(*place.batch, *place.plan, *place.rope, *place.cache, place.group, projections,
         b->attended.f32, b->attended.stride, compute);
  if (gated) ApplyGates(tokens, b, compute);
  b->attended.Quantize(tokens, compute);
}

}  // namespace lockstep
