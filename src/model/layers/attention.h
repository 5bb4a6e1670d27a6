// Attention over the paged cache for a whole step: the plan that cuts it into items (shared by all
// layers), and the layer that rotates, appends and attends.
//
// How the work is cut never changes a bit: a token's result is defined by its position alone
// (kernels/attention.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/attention.h"
#include "model/batch.h"
#include "model/compute.h"
#include "model/layers/norm.h"
#include "model/layers/rope.h"

namespace lockstep {

struct AttentionShape {
  int32_t heads = 0;     // query heads
  int32_t kv_heads = 0;  // divides heads
  int32_t head_dim = 0;
  float scale = 0.0f;
  int32_t window = 0;     // a query sees the last `window` positions, its own included; 0: all
  float soft_cap = 0.0f;  // of scores (kernels/attention.h); 0: none
  // Of a latent layer (kernels/attention.h); 0: another. All heads read its one KV head, and
  // `kv_heads` says into how many parts of equally many heads they are cut.
  int32_t latent_dim = 0;

  int32_t group() const { return heads / kv_heads; }
  int32_t value_dim() const { return latent_dim > 0 ? latent_dim : head_dim; }
};

// One item: some tokens of a row by one KV head; or, for one token far into its sequence, some
// splits.
struct AttentionItem {
  int32_t row = 0;
  int32_t kv_head = 0;
  int32_t token = 0;  // index among the step's tokens
  int32_t tokens = 0;
  int32_t split = -1;  // first split, or -1 for all of them
  int32_t splits = 0;
  int32_t shared = -1;  // index of the token and KV head among those whose splits are shared out
};

class AttentionPlan {
 public:
  static Result<AttentionPlan> Allocate(Arena* arena, const AttentionShape& shape,
                                        const BatchLimits& limits, int32_t max_context,
                                        int32_t threads);
  // Cuts `batch` into items, the longest first. Allocates nothing after the first steps.
  void Build(const Batch& batch, int32_t threads);

  const AttentionShape& shape() const { return shape_; }
  const std::vector<AttentionItem>& items() const { return items_; }

  // The splits that a query at `position` sees something of.
  int32_t FirstSplit(int32_t position) const;
  int32_t EndSplit(int32_t position) const { return position / kernels::kSplit + 1; }

  // Partial results of shared token-and-head `shared`: [splits][group][PartialFloats],
  // from the first split that its query sees.
  float* partials(int32_t shared) const { return partials_ + shared * shared_stride_; }
  std::atomic<int32_t>& finished(int32_t shared) const { return finished_[shared]; }

 private:
  AttentionShape shape_;
  int32_t max_shared_ = 0;
  int64_t shared_stride_ = 0;
  float* partials_ = nullptr;
  std::atomic<int32_t>* finished_ = nullptr;  // splits done, per shared token-and-head
  std::vector<AttentionItem> items_;
};

// The projections of a step's tokens, each row-major: q [T, heads * head_dim], k and v
// [T, kv_heads * head_dim] (strides in floats).
struct Projections {
  float* q = nullptr;
  float* k = nullptr;
  float* v = nullptr;
  int64_t q_stride = 0;
  int64_t kv_stride = 0;
  const RmsNorm* q_norm = nullptr;  // of every head before rotation; null or empty: none
  const RmsNorm* k_norm = nullptr;
};

// Norms and rotates q and k in place, appends k and v to the cache, and writes attention's output
// [T, heads * head_dim] to `out`. The cache group is batch.rows[r].block_tables[group].
void Attend(const Batch& batch, const AttentionPlan& plan, const RopeTable& rope,
            const kernels::KvLayer& layer, int32_t group, const Projections& projections,
            float* out, int64_t out_stride, Compute* compute);

// The second half of it, of queries that are rotated [T, heads * head_dim] and a cache that has
// their keys and values: out is [T, heads * value_dim].
void AttendCached(const Batch& batch, const AttentionPlan& plan, const kernels::KvLayer& layer,
                  int32_t group, const float* q, int64_t q_stride, float* out, int64_t out_stride,
                  Compute* compute);

}  // namespace lockstep
