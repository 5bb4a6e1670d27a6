#include "executor/cpu/state_store.h"

namespace lockstep {

int64_t StateBytes(const ModelInfo& info) {
  int64_t bytes = 0;
  for (const int64_t floats : info.state_layers) bytes += floats * sizeof(float);
  return bytes;
}

Result<StateStore> StateStore::Allocate(const ModelInfo& info, int32_t blocks) {
  StateStore store;
  for (const int64_t floats : info.state_layers) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        Buffer slab, Buffer::Allocate(size_t(floats) * sizeof(float) * blocks, "the states"));
    store.layers_.push_back({reinterpret_cast<float*>(slab.data()), floats});
    store.slabs_.push_back(std::move(slab));
  }
  return store;
}

}  // namespace lockstep
