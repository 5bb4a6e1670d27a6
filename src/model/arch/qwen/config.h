// The configuration of Qwen 2 and Qwen 3 models, read from a Hugging Face config.json or from GGUF
// metadata. Plain data, checked: a value that the forward pass cannot honour is an error naming
// file and key.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/layers/decoder_dims.h"
#include "model/layers/mixture.h"
#include "model/layers/rope.h"
#include "weights/checkpoint.h"

namespace lockstep::qwen {

// What tells the generations apart.
struct Generation {
  const char* gguf;  // general.architecture, and the prefix of its keys
  bool qkv_bias;     // q, k and v always have biases
  bool head_norms;   // q and k are normed by head
  int32_t head_dim;  // of a config.json without one; 0: d_model / heads
  bool experts;      // layers may be mixtures of experts
};
inline constexpr Generation kQwen2 = {"qwen2", true, false, 0, false};
inline constexpr Generation kQwen3 = {"qwen3", false, true, 128, false};
inline constexpr Generation kQwen3Moe = {"qwen3moe", false, true, 0, true};

struct Config {
  DecoderDims dims;
  bool qkv_bias = false;  // needed; in GGUF the tensors alone say so
  bool out_bias = false;
  RopeFrequencies rope{10000.0, 2};
  MixtureDims mixture;
  std::vector<bool> sparse;  // [layers]: the layer is a mixture of experts
};

Result<Config> ReadConfig(const Checkpoint& checkpoint, const Generation& generation);

}  // namespace lockstep::qwen
