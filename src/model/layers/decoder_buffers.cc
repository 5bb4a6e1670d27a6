#include "model/layers/decoder_buffers.h"

#include <algorithm>

#include "kernels/attention.h"
#include "model/layers/gated_delta.h"
#include "model/layers/gated_ffn.h"
#include "model/layers/linear.h"
#include "model/layers/mixture.h"
#include "model/layers/self_attention.h"

namespace lockstep {

void DecoderNeeds::AddScratch(const Linear& linear) {
  scratch = std::max(scratch, kernels::GemmScratchBytes(linear.matrix));
}

void DecoderNeeds::AddReaderOfNormed(const Linear& linear) {
  normed_codes = normed_codes || linear.integer();
  AddScratch(linear);
}

void DecoderNeeds::Add(const SelfAttention& attention, const AttentionShape& shape) {
  for (const Linear* linear : {&attention.q, &attention.k, &attention.v}) {
    AddReaderOfNormed(*linear);
  }
  gated_attention = gated_attention || attention.gated;
  attended_codes = attended_codes || attention.out.integer();
  AddScratch(attention.out);
  scratch = std::max(scratch, kernels::AttentionScratchBytes(shape.head_dim, shape.group()));
}

void DecoderNeeds::Add(const GatedDelta& delta) {
  for (const Linear* linear : {&delta.qkv, &delta.z, &delta.b, &delta.a}) {
    AddReaderOfNormed(*linear);
  }
  AddScratch(delta.out);
}

void DecoderNeeds::Add(const GatedFfn& ffn) {
  AddReaderOfNormed(ffn.gate);
  AddReaderOfNormed(ffn.up);
  gated_codes = gated_codes || ffn.down.integer();
  AddScratch(ffn.down);
}

void DecoderNeeds::Add(const Mixture& mixture) {
  if (mixture.experts.empty()) return;
  AddReaderOfNormed(mixture.router);
  for (const GatedFfn& expert : mixture.experts) Add(expert);
}

Result<DecoderBuffers> DecoderBuffers::Allocate(Arena* arena, int32_t tokens,
                                                const DecoderDims& dims, const DecoderNeeds& needs,
                                                bool with_branch) {
  const auto rows_of = [&](int64_t width) {
    return arena->Take<float>(size_t(tokens) * width, "activations");
  };
  DecoderBuffers b;
  b.x_stride = PaddedOutputs(dims.d_model);
  b.q_stride = PaddedOutputs(needs.gated_attention ? 2 * dims.q_size() : dims.q_size());
  b.kv_stride = PaddedOutputs(dims.kv_size());
  LOCKSTEP_ASSIGN_OR_RETURN(b.x, rows_of(b.x_stride));
  if (with_branch) {
    LOCKSTEP_ASSIGN_OR_RETURN(b.branch, rows_of(b.x_stride));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(b.normed,
                            Activations::Allocate(arena, tokens, dims.d_model, needs.normed_codes));
  LOCKSTEP_ASSIGN_OR_RETURN(b.q, rows_of(b.q_stride));
  LOCKSTEP_ASSIGN_OR_RETURN(b.k, rows_of(b.kv_stride));
  LOCKSTEP_ASSIGN_OR_RETURN(b.v, rows_of(b.kv_stride));
  LOCKSTEP_ASSIGN_OR_RETURN(
      b.attended, Activations::Allocate(arena, tokens, dims.attended_size(), needs.attended_codes));
  LOCKSTEP_ASSIGN_OR_RETURN(b.gated,
                            Activations::Allocate(arena, tokens, dims.d_ff, needs.gated_codes));
  LOCKSTEP_ASSIGN_OR_RETURN(b.up, rows_of(PaddedOutputs(dims.d_ff)));
  return b;
}

}  // namespace lockstep
