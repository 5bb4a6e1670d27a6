// The configuration of a Llama-shaped model (Llama 2 and 3, SmolLM2 and others of the shape), read
// from a Hugging Face config.json or from GGUF metadata. Plain data, checked: a value that the
// forward pass cannot honour is an error naming file and key.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/layers/rope.h"
#include "weights/checkpoint.h"

namespace lockstep::llama {

struct Config {
  int32_t vocab_size = 0;
  int32_t d_model = 0;
  int32_t layers = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t d_ff = 0;
  int32_t max_context = 0;
  float rms_eps = 0.0f;
  bool attention_bias = false;  // declared; in GGUF the tensors alone say so
  bool mlp_bias = false;
  bool tied_head = false;  // declared; in GGUF the tensors alone say so
  RopeFrequencies rope{10000.0, 2};
};

Result<Config> ReadConfig(const Checkpoint& checkpoint);

}  // namespace lockstep::llama
