// StateStore: the states of recurrent layers on this machine: for each layer one slab of blocks in
// f32, as model.h says. A step reads one block and writes another; which ones is the KV manager's
// matter (cache/kinds/recurrent).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "platform/buffer.h"

namespace lockstep {

// Bytes of one block over all layers.
int64_t StateBytes(const ModelInfo& info);

class StateStore {
 public:
  // `blocks` blocks for each of info.state_layers.
  static Result<StateStore> Allocate(const ModelInfo& info, int32_t blocks);
  std::span<const StateLayer> layers() const { return layers_; }

 private:
  std::vector<Buffer> slabs_;
  std::vector<StateLayer> layers_;
};

}  // namespace lockstep
