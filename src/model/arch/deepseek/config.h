// The configuration of DeepSeek V3 models, read from a Hugging Face config.json or from GGUF
// metadata. Plain data, checked: a value that the forward pass cannot honour is an error naming
// file and key.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/layers/decoder_dims.h"
#include "model/layers/latent_attention.h"
#include "model/layers/mixture.h"
#include "model/layers/rope.h"
#include "weights/checkpoint.h"

namespace lockstep::deepseek {

struct Config {
  DecoderDims dims;  // head_dim and value_dim as attention's projections have them; no KV heads
  LatentDims latent;
  float scale = 0.0f;  // of attention's scores
  RopeFrequencies rope{10000.0, 2};
  bool rotates_pairs = true;    // the file's order: rotated elements are neighbours
  bool attention_bias = false;  // needed; in GGUF the tensors alone say so
  MixtureDims mixture;
  int32_t d_shared = 0;      // feed-forward size of the experts that every token uses; 0: none
  int32_t dense_layers = 0;  // the first so many have no experts
  int32_t draft_layers = 0;  // behind the last, to guess tokens further on; not read
};

Result<Config> ReadConfig(const Checkpoint& checkpoint);

}  // namespace lockstep::deepseek
