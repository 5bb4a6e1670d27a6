// The configuration of a Llama-shaped model (Llama 2 and 3, SmolLM2 and others of the shape), read
// from a Hugging Face config.json or from GGUF metadata. Plain data, checked: a value that the
// forward pass cannot honour is an error naming file and key.
#pragma once

#include "base/status.h"
#include "model/layers/decoder_dims.h"
#include "model/layers/rope.h"
#include "weights/checkpoint.h"

namespace lockstep::llama {

struct Config {
  DecoderDims dims;
  bool attention_bias = false;  // declared; in GGUF the tensors alone say so
  bool mlp_bias = false;
  RopeFrequencies rope{10000.0, 2};
};

Result<Config> ReadConfig(const Checkpoint& checkpoint);

}  // namespace lockstep::llama
