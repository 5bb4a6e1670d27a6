#include "model/layers/self_attention.h"

namespace lockstep {

void SelfAttention::Run(const Place& place, DecoderBuffers* b, Compute* compute) const {
  const int32_t tokens = place.batch->size();
  const Product qkv[] = {
      {&q, b->q, b->q_stride}, {&k, b->k, b->kv_stride}, {&v, b->v, b->kv_stride}};
  Multiply(b->normed, tokens, qkv, compute);
  const Projections projections{b->q, b->k, b->v, b->q_stride, b->kv_stride, &q_norm, &k_norm};
  Attend(*place.batch, *place.plan, *place.rope, *place.cache, place.group, projections,
         b->attended.f32, b->attended.stride, compute);
  b->attended.Quantize(tokens, compute);
}

}  // namespace lockstep
