// What the configurations of decoders have in common: sizes and rotation, read from a Hugging Face
// config.json or from GGUF metadata and checked. What is an architecture's own is read in its
// folder. Errors name the file and the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/layers/decoder_dims.h"
#include "model/layers/rope.h"
#include "weights/checkpoint.h"

namespace lockstep {

// A size as the files' integers, before it is known to fit: at most 2^30.
Result<int32_t> ReadSize(const HfConfig& config, const char* key);
Result<int32_t> ReadSizeOr(const HfConfig& config, const char* key, int32_t fallback);
Result<int32_t> ReadSize(const GgufMetadata& metadata, const std::string& file,
                         const std::string& key);
Result<int32_t> ReadSizeOr(const GgufMetadata& metadata, const std::string& file,
                           const std::string& key, int32_t fallback);

// The sizes. What the configuration leaves out is as in `defaults`, where that is not 0 (head_dim:
// d_model / heads where it is).
Result<DecoderDims> ReadDims(const HfConfig& config, const DecoderDims& defaults);
// The same of the keys "<architecture>.*"; whether the head is tied is what the tensors say.
// `one_size`: keys, values and what is rotated must have the head's size.
Result<DecoderDims> ReadDims(const GgufFile& gguf, const std::string& architecture,
                             bool one_size = true);

// Rotation with `base`, scaled as `object` says: what stands under rope_scaling, or under
// rope_parameters, whose rope_theta then goes before `base`. Nothing: not scaled.
Result<RopeFrequencies> ReadRope(const HfConfig& config, const std::optional<HfConfig>& object,
                                 double base, int32_t head_dim);
// The same, from where configurations keep it when all layers rotate alike: rope_parameters since
// transformers 5, rope_theta and rope_scaling before.
Result<RopeFrequencies> ReadRope(const HfConfig& config, int32_t head_dim);
// GGUF: rope.freq_base and rope.scaling of "<architecture>.*", for sections of `head_dim`.
Result<RopeFrequencies> ReadRope(const GgufFile& gguf, const std::string& architecture,
                                 double default_base, int32_t head_dim);

// Of `layer_types`, which is there: whether each layer is `other`, or "full_attention".
Result<std::vector<bool>> ReadLayerTypes(const HfConfig& config, int32_t layers,
                                         const std::string& other);

// An error unless `key` is absent or `wanted`.
Status ExpectActivation(const HfConfig& config, const char* key, const std::string& wanted);

}  // namespace lockstep
