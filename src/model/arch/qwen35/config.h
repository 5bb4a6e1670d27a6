// The configuration of Qwen 3.5 models, of which the part for text counts, read from a Hugging Face
// config.json. Plain data, checked: a value that the forward pass cannot honour is an error naming
// file and key.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/layers/decoder_dims.h"
#include "model/layers/gated_delta.h"
#include "model/layers/rope.h"
#include "weights/checkpoint.h"

namespace lockstep::qwen35 {

struct Config {
  DecoderDims dims;
  GatedDeltaDims delta;
  std::vector<bool> recurrent;  // [layers]: the layer has a state; else it sees all positions
  bool attention_bias = false;
  RopeFrequencies rope{10000.0, 2};  // of the first dimensions of a head
};

Result<Config> ReadConfig(const Checkpoint& checkpoint);

}  // namespace lockstep::qwen35
