#include "kernels/attention.h"
#include "kernels/generic/attention_scratch.h"

namespace lockstep::kernels {

size_t AttentionScratchBytes(int32_t head_dim, int32_t /*heads*/) {
  return static_cast<size_t>(LayOutScratch(head_dim).floats) * sizeof(float);
}

}  // namespace lockstep::kernels
