#include "apps/serving/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "cache/disk/disk_store.h"
#include "cache/kv_sizing.h"
#include "platform/memory.h"

namespace lockstep {
namespace {

constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

double Gib(int64_t bytes) { return static_cast<double>(bytes) / kBytesPerGib; }

Result<int64_t> KvBytes(const ModelOptions& options, const MemoryPlan& plan) {
  if (options.kv_gib == 0) return std::min(plan.kv_row * options.max_rows, plan.free / 2);
  const auto asked = static_cast<int64_t>(options.kv_gib * kBytesPerGib);
  if (asked <= plan.free) return asked;
  return ResourceExhausted(
      fmt::format("a KV cache of {} GiB does not fit: beside the weights and a step's buffers "
                  "{:.2f} GiB are free",
                  options.kv_gib, Gib(plan.free)),
      "kv-gib");
}

}  // namespace

Result<MemoryPlan> PlanMemory(const ModelOptions& options, const ExecutorInfo& info) {
  MemoryPlan plan;
  plan.weights = info.weight_bytes;
  plan.activations = info.activation_bytes;
  const int64_t available = AvailableMemory();
  // What is on its way to the disk, and from there.
  const int64_t queues = options.prefix_dir.empty() ? 0 : 2 * kPrefixQueueBytes;
  const int64_t still_to_use = plan.activations + (options.sizes_only ? plan.weights : 0) + queues;
  plan.free = available - still_to_use;
  if (plan.free <= 0) {
    return ResourceExhausted(
        fmt::format("the model takes {:.2f} GiB more ({:.2f} GiB of weights, "
                    "{:.2f} GiB for a step), and {:.2f} GiB are free",
                    Gib(still_to_use), Gib(plan.weights), Gib(plan.activations), Gib(available)),
        "model");
  }
  const int64_t step_tokens = info.max_step_tokens;
  const auto sequence = [&](int64_t tokens) {
    return SequenceBytes(info.cache_groups, tokens, step_tokens);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(plan.kv_row, sequence(info.max_context));
  const int64_t half = std::max(1, info.max_context / 2);
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t half_row, sequence(half));
  plan.kv_token = (plan.kv_row - half_row) / std::max<int64_t>(1, info.max_context - half);
  LOCKSTEP_ASSIGN_OR_RETURN(plan.kv, KvBytes(options, plan));

  LOCKSTEP_ASSIGN_OR_RETURN(const CachePolicies policies,
                            MakeCachePolicies(info.cache_groups, step_tokens));
  LOCKSTEP_ASSIGN_OR_RETURN(const PoolSizes sizes,
                            SizePools(info.cache_groups, policies, plan.kv,
                                      {.rows = options.max_rows,
                                       .step_tokens = static_cast<int32_t>(step_tokens),
                                       .context = info.max_context,
                                       .share_prefixes = !options.no_prefix_cache}));
  plan.longest = std::min(sizes.max_tokens, info.max_context);
  plan.rows = std::min(options.max_rows, SequencesAtOnce(policies, sizes, plan.longest));
  return plan;
}

}  // namespace lockstep
