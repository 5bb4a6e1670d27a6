// Creation and the read-only side of EngineCore.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/engine_core.h"

namespace lockstep {
namespace {

Status CheckOptions(const EngineOptions& options, const ExecutorInfo& info) {
  if (options.max_rows < 1) return InvalidArgument("max_rows must be at least 1", "max_rows");
  if (options.max_queue < 1) return InvalidArgument("max_queue must be at least 1", "max_queue");
  if (options.max_rows > info.max_step_rows) {
    return InvalidArgument(fmt::format("max_rows {} is more than the {} rows that a step takes",
                                       options.max_rows, info.max_step_rows),
                           "max_rows");
  }
  // Otherwise a running row could miss a step.
  if (options.step_tokens < options.max_rows) {
    return InvalidArgument(fmt::format("step_tokens {} is less than max_rows {}",
                                       options.step_tokens, options.max_rows),
                           "step_tokens");
  }
  if (options.step_tokens > info.max_step_tokens) {
    return InvalidArgument(
        fmt::format("step_tokens {} is more than the {} tokens that a step takes",
                    options.step_tokens, info.max_step_tokens),
        "step_tokens");
  }
  for (const TokenId id : options.eos_ids) {
    if (id < 0 || id >= info.vocab_size) {
      return InvalidArgument(
          fmt::format("end-of-sequence id {} is outside the vocabulary of {}", id, info.vocab_size),
          "eos_ids");
    }
  }
  return OkStatus();
}

Status CheckStore(const PrefixStore& store, const ExecutorInfo& info) {
  // A bit each of what PrefixStore::Find answers.
  constexpr size_t kMostGroups = 64;
  if (info.cache_identity.empty() || info.cache_groups.size() > kMostGroups) {
    return Unimplemented("this backend's caches cannot be kept elsewhere", "prefix_store");
  }
  if (store.identity().find(info.cache_identity) == std::string::npos) {
    return InvalidArgument("the prefix store is for other caches", "prefix_store");
  }
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<EngineCore>> EngineCore::Create(std::unique_ptr<Executor> executor,
                                                       std::shared_ptr<const Tokenizer> tokenizer,
                                                       EngineOptions options, Clock now) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOptions(options, executor->info()));
  const PrefixStore* const store = options.prefix_cache ? options.prefix_store.get() : nullptr;
  if (store != nullptr) LOCKSTEP_RETURN_IF_ERROR(CheckStore(*store, executor->info()));
  LOCKSTEP_ASSIGN_OR_RETURN(auto kv,
                            KvManager::Create(executor->info().cache_groups, options.kv_bytes,
                                              {.rows = options.max_rows,
                                               .step_tokens = options.step_tokens,
                                               .context = executor->info().max_context,
                                               .share_prefixes = options.prefix_cache,
                                               .save_identity = store ? store->identity() : ""}));
  LOCKSTEP_RETURN_IF_ERROR(executor->AllocateCache(kv->pool_blocks()));
  return std::unique_ptr<EngineCore>(new EngineCore(std::move(executor), std::move(tokenizer),
                                                    std::move(options), std::move(kv),
                                                    std::move(now)));
}

EngineCore::EngineCore(std::unique_ptr<Executor> executor,
                       std::shared_ptr<const Tokenizer> tokenizer, EngineOptions options,
                       std::unique_ptr<KvManager> kv, Clock now)
    : executor_(std::move(executor)),
      tokenizer_(std::move(tokenizer)),
      options_(std::move(options)),
      limits_{.vocab_size = executor_->info().vocab_size,
              .max_context = executor_->info().max_context,
              .cache_tokens = kv->max_tokens()},
      kv_(std::move(kv)),
      now_(std::move(now)),
      transfer_(
          options_.prefix_cache && options_.prefix_store
              ? std::make_unique<PrefixTransfer>(executor_.get(), kv_.get(), options_.prefix_store)
              : nullptr),
      scheduler_(kv_.get(), options_.max_rows, options_.step_tokens, options_.chunk_cut,
                 transfer_ ? [this](Sequence* sequence) { return transfer_->Begin(sequence); }
                           : std::function<bool(Sequence*)>()),
      pace_(std::chrono::duration<double>(options_.step_budget).count(), options_.step_tokens),
      masks_(options_.max_rows),
      stats_(EmptyEngineStats()) {
  // Steps need no memory for their own books.
  const auto rows = static_cast<size_t>(options_.max_rows);
  started_.reserve(rows);
  plan_.rows.reserve(rows);
  input_.rows.reserve(rows);
  input_.await_masks = [this] { masks_.Wait(); };
  Publish();
}

bool EngineCore::idle() const { return sequences_.empty() && arrivals_.empty(); }

int32_t EngineCore::waiting() const {
  return static_cast<int32_t>(scheduler_.waiting().size() + arrivals_.size());
}

std::optional<EngineCore::TimePoint> EngineCore::NextDeadline() const {
  std::optional<TimePoint> next;
  for (const auto& [id, sequence] : sequences_) {
    const auto& deadline = sequence->request().deadline;
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  return next;
}

EngineStats EngineCore::stats() const {
  EngineStats stats;
  {
    const std::lock_guard lock(published_mutex_);
    stats = published_;
  }
  // It goes on while the loop rests.
  if (transfer_ != nullptr) stats.prefix_store = transfer_->store_stats();
  return stats;
}

void EngineCore::Publish() {
  stats_.running = running();
  stats_.waiting = waiting();
  stats_.running_open_ended =
      std::count_if(scheduler_.running().begin(), scheduler_.running().end(),
                    [](const auto& sequence) { return sequence->request().max_tokens < 0; });
  stats_.waits_for_row = scheduler_.waits_for_row();
  stats_.waits_for_memory = scheduler_.waits_for_memory();
  stats_.kv_bytes_budget = kv_->budget_bytes();
  stats_.kv_bytes_reserved = kv_->reserved_bytes();
  stats_.kv_bytes_used = kv_->used_bytes();
  stats_.kv_bytes_cached = kv_->cached_bytes();
  stats_.prefix_evictions = kv_->evictions();
  if (transfer_ != nullptr) {
    stats_.prefix_transfer = transfer_->stats();
    stats_.prefix_writes_dropped = kv_->never_saved();
  }
  const std::lock_guard lock(published_mutex_);
  published_ = stats_;
}

}  // namespace lockstep
