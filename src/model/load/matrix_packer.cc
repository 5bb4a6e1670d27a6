#include "model/load/matrix_packer.h"

#include <algorithm>

#include "model/load/chunked_hash.h"

namespace lockstep {
namespace {

constexpr int32_t kPanelsPerItem = 16;
constexpr int64_t kSlabBytes = int64_t{16} << 20;  // of the checkpoint

using Advice = MappedFile::Advice;

// The share of `bytes` that slab number `slab` of `slabs` covers.
std::span<const std::byte> Share(std::span<const std::byte> bytes, int64_t slab, int64_t slabs) {
  const size_t begin = bytes.size() * slab / slabs;
  return bytes.subspan(begin, bytes.size() * (slab + 1) / slabs - begin);
}

// Slab by slab of some tensors: asks for the next, does one, drops it.
template <class Body>
void ForSlabs(std::span<const TensorView* const> tensors, int64_t slabs, const PackContext& context,
              Body&& body) {
  const auto advise = [&](Advice advice, int64_t slab) {
    uint64_t bytes = 0;
    for (const TensorView* tensor : tensors) {
      const auto share = Share(tensor->data, slab, slabs);
      bytes += share.size();
      context.checkpoint->Advise(advice, share);
    }
    return bytes;
  };
  advise(Advice::kWillNeed, 0);
  context.pool->BeginStep();
  for (int64_t slab = 0; slab < slabs; ++slab) {
    if (slab + 1 < slabs) advise(Advice::kWillNeed, slab + 1);
    body(slab);
    context.progress->Add(advise(Advice::kDontNeed, slab));
  }
  context.pool->EndStep();
}

int64_t Slabs(std::span<const TensorView* const> tensors) {
  int64_t bytes = 0;
  for (const TensorView* tensor : tensors) bytes += tensor->data.size();
  return std::max<int64_t>(1, (bytes + kSlabBytes - 1) / kSlabBytes);
}

// Where slab number `slab` of `slabs` begins among `count` parts.
int32_t SlabBegin(int32_t count, int64_t slab, int64_t slabs) {
  return static_cast<int32_t>(count * slab / slabs);
}

void HashSlab(ChunkedHash* hash, int64_t slab, int64_t slabs, ThreadPool* pool) {
  const int32_t begin = SlabBegin(hash->chunks(), slab, slabs);
  pool->ParallelFor(SlabBegin(hash->chunks(), slab + 1, slabs) - begin,
                    [&](int32_t item, int32_t) { hash->Hash(begin + item); });
}

}  // namespace

Result<PackResult> PackMatrix(const StoredMatrix& matrix, bool f32, const PackContext& context) {
  const quant::Source& source = matrix.source;
  LOCKSTEP_ASSIGN_OR_RETURN(quant::PackedWeights packed,
                            quant::PackedWeights::Allocate(source, f32, context.memory));
  if (context.sizes_only) {
    return PackResult{std::move(packed), std::vector<uint64_t>(matrix.tensors.size())};
  }
  std::vector<ChunkedHash> hashes;
  for (const TensorView* tensor : matrix.tensors) hashes.emplace_back(tensor->data);

  const int64_t slabs = Slabs(matrix.tensors);
  const int32_t panels = packed.matrix().panels();
  ForSlabs(matrix.tensors, slabs, context, [&](int64_t slab) {
    const int32_t first = SlabBegin(panels, slab, slabs);
    const int32_t last = SlabBegin(panels, slab + 1, slabs);
    const int32_t items = (last - first + kPanelsPerItem - 1) / kPanelsPerItem;
    context.pool->ParallelFor(items, [&](int32_t item, int32_t) {
      const int32_t begin = first + item * kPanelsPerItem;
      packed.PackPanels(source, begin, std::min(last, begin + kPanelsPerItem));
    });
    for (ChunkedHash& hash : hashes) HashSlab(&hash, slab, slabs, context.pool);
  });
  PackResult result{std::move(packed), {}};
  for (const ChunkedHash& hash : hashes) result.hashes.push_back(hash.Value());
  return result;
}

uint64_t HashTensor(const TensorView& tensor, const PackContext& context) {
  if (context.sizes_only) return 0;
  const TensorView* const tensors[] = {&tensor};
  ChunkedHash hash(tensor.data);
  const int64_t slabs = Slabs(tensors);
  ForSlabs(tensors, slabs, context,
           [&](int64_t slab) { HashSlab(&hash, slab, slabs, context.pool); });
  return hash.Value();
}

}  // namespace lockstep
