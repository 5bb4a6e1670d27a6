// Packs a stored matrix on all threads, slab by slab of outputs: the next slab is asked of the disk
// while one is packed, and its pages of the checkpoint are dropped behind it. So what is resident
// at any time is the packed weights and one slab.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/load/load_progress.h"
#include "model/load/matrix_storage.h"
#include "platform/buffer.h"
#include "platform/thread_pool.h"
#include "quant/packed_weights.h"
#include "weights/checkpoint.h"

namespace lockstep {

// What a loading shares among its matrices.
struct PackContext {
  const Checkpoint* checkpoint = nullptr;
  ThreadPool* pool = nullptr;
  Arena* memory = nullptr;
  LoadProgress* progress = nullptr;
  bool sizes_only = false;  // memory is taken and left alone; hashes are 0
};

struct PackResult {
  quant::PackedWeights weights;
  std::vector<uint64_t> hashes;  // ChunkedHash of each tensor
};

// `f32` as PackedWeights::Allocate has it.
Result<PackResult> PackMatrix(const StoredMatrix& matrix, bool f32, const PackContext& context);

// ChunkedHash of a tensor on all threads, whose pages are dropped again.
uint64_t HashTensor(const TensorView& tensor, const PackContext& context);

}  // namespace lockstep
