// The configuration of a Gemma 3 text model, read from a Hugging Face config.json (its own, or the
// text_config of a model of text and images) or from GGUF metadata. Plain data, checked: a value
// that the forward pass cannot honour is an error naming file and key.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/layers/decoder_dims.h"
#include "model/layers/rope.h"
#include "weights/checkpoint.h"

namespace lockstep::gemma3 {

// What the layers of one kind have in common.
struct Kind {
  int32_t window = 0;  // 0: they see all positions
  RopeFrequencies rope{10000.0, 2};
};

struct Config {
  DecoderDims dims;
  bool attention_bias = false;  // declared
  float attention_scale = 0.0f;
  std::vector<Kind> kinds;       // those that have a layer
  std::vector<int32_t> kind_of;  // [layers]
};

Result<Config> ReadConfig(const Checkpoint& checkpoint);

}  // namespace lockstep::gemma3
