#include "executor/cpu/kv_store.h"

namespace lockstep {

int64_t KvBlockBytesOfModel(const ModelInfo& info, kernels::KvCodec codec) {
  int64_t bytes = 0;
  for (const KvShape& shape : info.kv_layers) {
    bytes += kernels::KvBlockBytes(shape.kv_heads, shape.head_dim, codec);
  }
  return bytes;
}

Result<KvStore> KvStore::Allocate(const ModelInfo& info, kernels::KvCodec codec, int32_t blocks) {
  KvStore store;
  for (const KvShape& shape : info.kv_layers) {
    const int64_t block = kernels::KvBlockBytes(shape.kv_heads, shape.head_dim, codec);
    LOCKSTEP_ASSIGN_OR_RETURN(Buffer slab,
                              Buffer::Allocate(size_t(block) * blocks, "the KV cache"));
    store.layers_.push_back({slab.data(), block, shape.kv_heads, shape.head_dim, codec});
    store.slabs_.push_back(std::move(slab));
  }
  return store;
}

}  // namespace lockstep
