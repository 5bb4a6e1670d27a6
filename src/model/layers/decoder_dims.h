// The sizes that every decoder has, whatever its architecture. Plain data, checked by whoever reads
// it (load/decoder_config.h).
#pragma once

#include <cstdint>

namespace lockstep {

struct DecoderDims {
  int32_t vocab_size = 0;
  int32_t d_model = 0;
  int32_t layers = 0;
  int32_t heads = 0;      // query heads, a multiple of kv_heads
  int32_t kv_heads = 0;   // 0: none are projected (layers/latent_attention.h)
  int32_t head_dim = 0;   // need not be d_model / heads
  int32_t value_dim = 0;  // of a head of attention's output; 0: head_dim
  int32_t d_ff = 0;
  int32_t max_context = 0;
  float rms_eps = 0.0f;
  bool tied_head = false;  // the output head is the embedding

  int32_t q_size() const { return heads * head_dim; }
  int32_t attended_size() const { return heads * (value_dim > 0 ? value_dim : head_dim); }
  int32_t kv_size() const { return kv_heads * head_dim; }
};

}  // namespace lockstep
