#include "model/layers/attention.h"

#include <algorithm>
#include <new>

#include "model/layers/activations.h"

namespace lockstep {
namespace {

using kernels::kSplit;

constexpr int32_t kTokensWorthSharing = 8;
constexpr int32_t kTileTokens = 32;                     // tokens of a prompt chunk in one item
constexpr int64_t kPartialsBytes = int64_t{256} << 20;  // that are worth it to share out splits

bool Has(const RmsNorm* norm) { return norm != nullptr && !norm->empty(); }

// The most splits that one query sees.
int32_t MostSplits(const AttentionShape& shape, int32_t max_context) {
  const int32_t all = (max_context - 1) / kSplit + 1;
  return shape.window == 0 ? all : std::min(all, (shape.window - 1 + kSplit - 1) / kSplit + 1);
}

void RotateAndAppend(const Batch& batch, const AttentionShape& shape, const RopeTable& rope,
                     const kernels::KvLayer& layer, int32_t group, const Projections& p,
                     Compute* compute) {
  const auto& elementwise = compute->kernels().elementwise;
  ForRows(compute, batch.size(), kTokensWorthSharing, [&](int32_t first, int32_t last) {
    batch.ForTokens(first, last, [&](int32_t t, const BatchRow& row) {
      const BlockId* table = row.block_tables[group].data();
      float* q = p.q + t * p.q_stride;
      for (int32_t h = 0; h < shape.heads; ++h) {
        if (Has(p.q_norm)) p.q_norm->ApplyToHead(elementwise, q + h * shape.head_dim);
        elementwise.rope(q + h * shape.head_dim, rope.cosines(t), rope.sines(t), rope.half());
      }
      for (int32_t h = 0; h < shape.kv_heads; ++h) {
        float* k = p.k + t * p.kv_stride + h * shape.head_dim;
        if (Has(p.k_norm)) p.k_norm->ApplyToHead(elementwise, k);
        elementwise.rope(k, rope.cosines(t), rope.sines(t), rope.half());
        compute->kernels().attention.append(layer, table, batch.positions[t], h, k,
                                            p.v + t * p.kv_stride + h * shape.head_dim);
      }
    });
  });
}

}  // namespace

Result<AttentionPlan> AttentionPlan::Allocate(Arena* arena, const AttentionShape& shape,
                                              const BatchLimits& limits, int32_t max_context,
                                              int32_t threads) {
  AttentionPlan plan;
  plan.shape_ = shape;
  // Splits are shared out only while there are fewer tokens-and-heads than would keep all threads
  // busy.
  plan.shared_stride_ = int64_t{MostSplits(shape, max_context)} * shape.group() *
                        kernels::PartialFloats(shape.value_dim());
  const int64_t affordable =
      kPartialsBytes / (plan.shared_stride_ * static_cast<int64_t>(sizeof(float)));
  plan.max_shared_ = static_cast<int32_t>(std::min<int64_t>(
      kItemsPerThread * threads + shape.kv_heads, std::max<int64_t>(affordable, shape.kv_heads)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      plan.partials_,
      arena->Take<float>(plan.max_shared_ * plan.shared_stride_, "attention partials"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      plan.finished_, arena->Take<std::atomic<int32_t>>(plan.max_shared_, "attention counters"));
  for (int32_t i = 0; i < plan.max_shared_; ++i) new (&plan.finished_[i]) std::atomic<int32_t>(0);
  plan.items_.reserve(size_t(limits.max_rows + limits.max_tokens / kTileTokens) * shape.kv_heads +
                      size_t(plan.max_shared_) * 8);
  return plan;
}

int32_t AttentionPlan::FirstSplit(int32_t position) const {
  return shape_.window == 0 ? 0 : std::max(0, position - shape_.window + 1) / kSplit;
}

void AttentionPlan::Build(const Batch& batch, int32_t threads) {
  items_.clear();
  const int32_t wanted = kItemsPerThread * threads;
  const bool share =
      static_cast<int32_t>(batch.rows.size()) * shape_.kv_heads <= wanted && threads > 1;
  int32_t shared = 0;
  for (int32_t r = 0; r < static_cast<int32_t>(batch.rows.size()); ++r) {
    const BatchRow& row = batch.rows[r];
    const int32_t first_split = FirstSplit(row.begin);
    const int32_t splits = EndSplit(row.begin) - first_split;
    if (share && row.count == 1 && splits > 1 && shared + shape_.kv_heads <= max_shared_) {
      const int32_t pieces = std::min(splits, (wanted + shape_.kv_heads - 1) / shape_.kv_heads);
      const int32_t piece = (splits + pieces - 1) / pieces;
      for (int32_t h = 0; h < shape_.kv_heads; ++h, ++shared) {
        for (int32_t s = 0; s < splits; s += piece) {
          items_.push_back(
              {r, h, row.first, 1, first_split + s, std::min(piece, splits - s), shared});
        }
      }
      continue;
    }
    for (int32_t t = 0; t < row.count; t += kTileTokens) {
      for (int32_t h = 0; h < shape_.kv_heads; ++h) {
        items_.push_back({r, h, row.first + t, std::min(kTileTokens, row.count - t), -1, 0, -1});
      }
    }
  }
  const auto cost = [&](const AttentionItem& item) {
    if (item.split >= 0) return int64_t{item.splits} * kSplit;
    const int32_t seen = batch.positions[item.token] + 1;
    return int64_t{shape_.window == 0 ? seen : std::min(seen, shape_.window)} * item.tokens;
  };
  std::sort(items_.begin(), items_.end(),
            [&](const AttentionItem& a, const AttentionItem& b) { return cost(a) > cost(b); });
}

void Attend(const Batch& batch, const AttentionPlan& plan, const RopeTable& rope,
            const kernels::KvLayer& layer, int32_t group, const Projections& p, float* out,
            int64_t out_stride, Compute* compute) {
  RotateAndAppend(batch, plan.shape(), rope, layer, group, p, compute);
  AttendCached(batch, plan, layer, group, p.q, p.q_stride, out, out_stride, compute);
}

void AttendCached(const Batch& batch, const AttentionPlan& plan, const kernels::KvLayer& layer,
                  int32_t group, const float* q, int64_t q_stride, float* out, int64_t out_stride,
                  Compute* compute) {
  const AttentionShape& shape = plan.shape();
  const auto& attention = compute->kernels().attention;
  const auto run = [&](const AttentionItem& item, int32_t worker) {
    const BlockId* table = batch.rows[item.row].block_tables[group].data();
    const int32_t first_head = item.kv_head * shape.group();
    kernels::AttentionQuery query;
    query.q = q + item.token * q_stride + first_head * shape.head_dim;
    query.token_stride = q_stride;
    query.tokens = item.tokens;
    query.heads = shape.group();
    query.first_position = batch.positions[item.token];
    query.kv_head = shape.latent_dim > 0 ? 0 : item.kv_head;
    query.scale = shape.scale;
    query.window = shape.window;
    query.soft_cap = shape.soft_cap;
    float* head_out = out + item.token * out_stride + first_head * shape.value_dim();
    if (item.split < 0) {
      attention.attend(layer, table, query, head_out, out_stride, compute->scratch(worker));
      return;
    }
    // Partials lie [split][head]; whoever finishes the last one folds them, always in split order.
    const int64_t partial = kernels::PartialFloats(shape.value_dim());
    float* partials = plan.partials(item.shared);
    const int32_t first_split = plan.FirstSplit(query.first_position);
    for (int32_t s = item.split; s < item.split + item.splits; ++s) {
      attention.attend_split(layer, table, query, s,
                             partials + (s - first_split) * shape.group() * partial,
                             compute->scratch(worker));
    }
    const int32_t splits = plan.EndSplit(query.first_position) - first_split;
    std::atomic<int32_t>& finished = plan.finished(item.shared);
    if (finished.fetch_add(item.splits, std::memory_order_acq_rel) + item.splits != splits) return;
    finished.store(0, std::memory_order_relaxed);
    for (int32_t h = 0; h < shape.group(); ++h) {
      attention.fold(partials + h * partial, shape.group() * partial, splits, nullptr,
                     shape.value_dim(), head_out + h * shape.value_dim());
    }
  };
  const std::vector<AttentionItem>& items = plan.items();
  compute->pool().ParallelFor(static_cast<int32_t>(items.size()),
                              [&](int32_t item, int32_t worker) { run(items[item], worker); });
}

}  // namespace lockstep
