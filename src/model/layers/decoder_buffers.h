// DecoderBuffers: what a step of a decoder writes into, shared by its layers, which run one after
// the other. Memory of the model's arena, made once for the largest step.
//
// Not thread-safe; one step at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "model/layers/activations.h"
#include "model/layers/decoder_dims.h"
#include "platform/buffer.h"

namespace lockstep {

struct AttentionShape;
struct SelfAttention;
struct GatedDelta;
struct GatedFfn;
struct Mixture;
struct Linear;

// What the products of a decoder ask of its buffers: which activations as codes too, and how much
// scratch memory a thread.
class DecoderNeeds {
 public:
  void Add(const SelfAttention& attention, const AttentionShape& shape);
  void Add(const GatedDelta& delta);
  void Add(const GatedFfn& ffn);
  void Add(const Mixture& mixture);
  void AddReaderOfNormed(const Linear& linear);  // the head, for one

  bool normed_codes = false;
  bool attended_codes = false;
  bool gated_attention = false;
  bool gated_codes = false;
  size_t scratch = 0;

 private:
  void AddScratch(const Linear& linear);
};

struct DecoderBuffers {
  float* x = nullptr;       // [T, d_model], the residual stream
  float* branch = nullptr;  // [T, d_model], what is normed before it joins x; null if none is
  int64_t x_stride = 0;
  Activations normed;  // [T, d_model]
  float* q = nullptr;  // [T, heads * head_dim], and as many gates
  float* k = nullptr;  // [T, kv_heads * head_dim]
  float* v = nullptr;  // [T, kv_heads * head_dim]
  int64_t q_stride = 0;
  int64_t kv_stride = 0;
  Activations attended;  // [T, dims.attended_size()]
  Activations gated;     // [T, d_ff]
  float* up = nullptr;   // [T, d_ff]

  static Result<DecoderBuffers> Allocate(Arena* arena, int32_t tokens, const DecoderDims& dims,
                                         const DecoderNeeds& needs, bool with_branch);
};

}  // namespace lockstep
