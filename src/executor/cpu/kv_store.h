// KvStore: the bytes of the paged cache on this machine: for each layer one slab of blocks, laid
// out as kernels/attention.h says. Which block belongs to whom is the KV manager's matter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention.h"
#include "model/model.h"
#include "platform/buffer.h"

namespace lockstep {

// Bytes of one block over all layers.
int64_t KvBlockBytesOfModel(const ModelInfo& info, kernels::KvCodec codec);

class KvStore {
 public:
  static Result<KvStore> Allocate(const ModelInfo& info, kernels::KvCodec codec, int32_t blocks);
  std::span<const kernels::KvLayer> layers() const { return layers_; }

 private:
  std::vector<Buffer> slabs_;
  std::vector<kernels::KvLayer> layers_;
};

}  // namespace lockstep
