#include "model/arch/llama/config.h"

#include <string>

#include "model/load/decoder_config.h"

namespace lockstep::llama {
namespace {

Result<Config> FromGguf(const GgufFile& gguf) {
  const std::string& file = gguf.path();
  LOCKSTEP_ASSIGN_OR_RETURN(const int32_t experts,
                            ReadSizeOr(gguf.metadata(), file, "llama.expert_count", 0));
  if (experts != 0) {
    return Unimplemented(file + ": llama.expert_count is " + std::to_string(experts) +
                             "; mixtures of experts are not supported for this architecture",
                         "llama.expert_count");
  }
  Config c;
  LOCKSTEP_ASSIGN_OR_RETURN(c.dims, ReadDims(gguf, "llama"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.rope, ReadRope(gguf, "llama", 10000.0, c.dims.head_dim));
  if (const TensorView* factors = gguf.FindTensor("rope_freqs.weight"); factors != nullptr) {
    if (factors->dtype != DType::kF32 || factors->elements() != c.rope.half()) {
      return DataLoss(file + ": tensor rope_freqs.weight is not " + std::to_string(c.rope.half()) +
                          " values of F32",
                      "rope_freqs.weight");
    }
    c.rope.Divide({reinterpret_cast<const float*>(factors->data.data()), size_t(c.rope.half())});
  }
  return c;
}

Result<Config> FromHf(const HfConfig& hf) {
  Config c;
  LOCKSTEP_ASSIGN_OR_RETURN(c.dims, ReadDims(hf, {}));
  LOCKSTEP_ASSIGN_OR_RETURN(c.attention_bias, hf.GetBoolOr("attention_bias", false));
  LOCKSTEP_ASSIGN_OR_RETURN(c.mlp_bias, hf.GetBoolOr("mlp_bias", false));
  LOCKSTEP_RETURN_IF_ERROR(ExpectActivation(hf, "hidden_act", "silu"));
  LOCKSTEP_ASSIGN_OR_RETURN(c.rope, ReadRope(hf, c.dims.head_dim));
  return c;
}

}  // namespace

Result<Config> ReadConfig(const Checkpoint& checkpoint) {
  return checkpoint.gguf() != nullptr ? FromGguf(*checkpoint.gguf()) : FromHf(*checkpoint.config());
}

}  // namespace lockstep::llama
