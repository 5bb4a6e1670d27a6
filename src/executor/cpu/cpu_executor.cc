#include "executor/cpu/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "executor/cpu/block_parts.h"
#include "executor/cpu/kv_store.h"
#include "executor/cpu/state_store.h"
#include "model/layers/activations.h"
#include "model/load/packed_cache.h"
#include "platform/float_environment.h"
#include "sampling/logprobs.h"
#include "sampling/sampler.h"

namespace lockstep {
namespace {

class CpuExecutor : public Executor {
 public:
  CpuExecutor(std::unique_ptr<ThreadPool> pool, std::unique_ptr<Model> model,
              const CpuExecutorOptions& options)
      : options_(options),
        pool_(std::move(pool)),
        model_(std::move(model)),
        compute_(pool_.get(), options.kernels != nullptr ? *options.kernels : kernels::Table()) {}

  // `config_hash`: ConfigHash of the checkpoint.
  Status Prepare(uint64_t config_hash);

  const ExecutorInfo& info() const override { return info_; }
  Status AllocateCache(const std::vector<int32_t>& blocks) override;
  Status Step(const StepInput& input, StepOutput* output) override;
  Status ExportBlocks(int32_t group, std::span<const BlockId> blocks,
                      std::span<std::byte> bytes) override;
  Status ImportBlocks(int32_t group, std::span<const BlockId> blocks,
                      std::span<const std::byte> bytes) override;

 private:
  // What one batch.logit_tokens entry is for.
  struct LogitUse {
    int32_t row = 0;
    int32_t position = 0;  // absolute position of the token
    bool sample = false;
    bool prompt = false;
    Status status = OkStatus();  // of this token's logits; a row has several, used at once
  };

  Status FillBatch(const StepInput& input);
  // Everything that is wanted of the logits of one token.
  void UseLogits(const StepRow& row, float* logits, int32_t worker, LogitUse* use,
                 RowOutput* output);

  CpuExecutorOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Model> model_;
  Compute compute_;
  ExecutorInfo info_;
  std::optional<KvStore> kv_;
  std::optional<StateStore> states_;  // of recurrent layers, where there are any
  std::vector<BlockParts> parts_;     // [cache group]

  Batch batch_;
  std::vector<LogitUse> uses_;
  Arena arena_;
  float* logits_ = nullptr;  // [max_step_rows, vocab padded]
  int64_t logits_stride_ = 0;
  std::vector<Sampler> samplers_;  // one a worker
};

Status CpuExecutor::Prepare(uint64_t config_hash) {
  const ModelInfo& model = model_->info();
  LOCKSTEP_RETURN_IF_ERROR(CheckKvScheme(model, options_.kv));
  info_.architecture = model.architecture;
  info_.vocab_size = model.vocab_size;
  info_.max_context = options_.max_context > 0 ? options_.max_context : model.max_context;
  if (info_.max_context > model.max_context) {
    return InvalidArgument(fmt::format("a context of {} tokens is more than the model's {}",
                                       info_.max_context, model.max_context),
                           "context");
  }
  info_.max_step_tokens = options_.max_step_tokens;
  info_.max_step_rows = options_.max_step_rows;
  info_.weight_bytes = model.weight_bytes;
  info_.head_multiply_adds = int64_t{model.vocab_size} * model.d_model;
  info_.multiply_adds = model.multiply_adds - info_.head_multiply_adds;
  info_.integer_products = model.integer_products;
  info_.fingerprint =
      fmt::format("{}-{:016x}-{}-kv{}", model.architecture, model.weights_hash,
                  model.integer_products ? "int8" : "f32", KvSchemeName(options_.kv));
  info_.cache_identity = fmt::format("{}-config{:016x}", info_.fingerprint, config_hash);
  for (int32_t group = 0; group < static_cast<int32_t>(model.kv_groups.size()); ++group) {
    const int32_t window = model.kv_groups[group].window;
    const CacheKind all = model.kv_groups[group].latent ? CacheKind::kLatent : CacheKind::kPaged;
    info_.cache_groups.push_back({.kind = window > 0 ? CacheKind::kWindow : all,
                                  .block_tokens = kernels::kBlockTokens,
                                  .block_bytes = KvBlockBytesOfGroup(model, group, options_.kv),
                                  .scheme = KvSchemeName(options_.kv),
                                  .window = window});
  }
  if (!model.state_layers.empty()) {
    info_.cache_groups.push_back({.kind = CacheKind::kRecurrent,
                                  .block_tokens = kernels::kBlockTokens,
                                  .block_bytes = StateBytes(model),
                                  .scheme = "f32"});
  }

  LOCKSTEP_RETURN_IF_ERROR(
      model_->Prepare({options_.max_step_tokens, options_.max_step_rows}, &compute_));
  logits_stride_ = PaddedOutputs(model.vocab_size);
  LOCKSTEP_ASSIGN_OR_RETURN(logits_,
                            arena_.Take<float>(options_.max_step_rows * logits_stride_, "logits"));
  info_.activation_bytes = model_->activation_bytes() + arena_.bytes();
  for (int32_t worker = 0; worker < pool_->threads(); ++worker) {
    samplers_.emplace_back(compute_.kernels());
  }
  return OkStatus();
}

Status CpuExecutor::AllocateCache(const std::vector<int32_t>& blocks) {
  LOCKSTEP_CHECK(blocks.size() == info_.cache_groups.size());
  LOCKSTEP_ASSIGN_OR_RETURN(kv_, KvStore::Allocate(model_->info(), options_.kv, blocks));
  if (!model_->info().state_layers.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(states_, StateStore::Allocate(model_->info(), blocks.back()));
    model_->UseStates(states_->layers());
  }
  parts_.resize(blocks.size());
  for (size_t layer = 0; layer < kv_->layers().size(); ++layer) {
    const kernels::KvLayer& kv = kv_->layers()[layer];
    parts_[model_->info().kv_layers[layer].group].Add(kv.data, kv.block_stride);
  }
  if (!states_) return OkStatus();
  for (const StateLayer& state : states_->layers()) {
    parts_.back().Add(reinterpret_cast<std::byte*>(state.data), state.stride * sizeof(float));
  }
  return OkStatus();
}

Status CpuExecutor::ExportBlocks(int32_t group, std::span<const BlockId> blocks,
                                 std::span<std::byte> bytes) {
  parts_[group].Export(blocks, bytes);
  return OkStatus();
}

Status CpuExecutor::ImportBlocks(int32_t group, std::span<const BlockId> blocks,
                                 std::span<const std::byte> bytes) {
  parts_[group].Import(blocks, bytes);
  return OkStatus();
}

Status CpuExecutor::FillBatch(const StepInput& input) {
  batch_.tokens.clear();
  batch_.positions.clear();
  batch_.rows.clear();
  batch_.logit_tokens.clear();
  uses_.clear();
  for (size_t r = 0; r < input.rows.size(); ++r) {
    const StepRow& row = input.rows[r];
    batch_.rows.push_back({batch_.size(), row.count, row.begin, row.block_tables});
    for (int32_t position = row.begin; position < row.begin + row.count; ++position) {
      const TokenId token = row.sequence[position];
      if (token < 0 || token >= info_.vocab_size) {
        return Internal(fmt::format("token id {} is outside the vocabulary", token));
      }
      const bool last = position == row.begin + row.count - 1;
      const LogitUse use{static_cast<int32_t>(r), position, last && row.sampling != nullptr,
                         row.prompt_logprobs >= 0 && position < row.prompt_tokens};
      if (use.sample || use.prompt) {
        batch_.logit_tokens.push_back(batch_.size());
        uses_.push_back(use);
      }
      batch_.tokens.push_back(token);
      batch_.positions.push_back(position);
    }
  }
  if (batch_.size() > info_.max_step_tokens ||
      static_cast<int32_t>(batch_.rows.size()) > info_.max_step_rows) {
    return Internal("a step is larger than the executor was made for");
  }
  return OkStatus();
}

Status CpuExecutor::Step(const StepInput& input, StepOutput* output) {
  SetFloatEnvironment();
  output->rows.resize(input.rows.size());
  for (size_t r = 0; r < input.rows.size(); ++r) {
    RowOutput& row = output->rows[r];
    row.status = OkStatus();
    row.token = -1;
    row.logprobs.token = -1;
    row.logprobs.logprob = 0.0f;
    row.logprobs.top.clear();
    row.prompt.resize(input.rows[r].prompt_logprobs >= 0 ? input.rows[r].count : 0);
  }
  LOCKSTEP_RETURN_IF_ERROR(FillBatch(input));

  pool_->BeginStep();
  model_->Forward(batch_, kv_->layers(), &compute_);
  if (input.await_masks) input.await_masks();
  const int32_t wanted = static_cast<int32_t>(uses_.size());
  for (int32_t begin = 0; begin < wanted; begin += options_.max_step_rows) {
    const int32_t count = std::min(options_.max_step_rows, wanted - begin);
    model_->Logits(batch_, begin, count, &compute_, logits_, logits_stride_);
    pool_->ParallelFor(count, [&](int32_t item, int32_t worker) {
      LogitUse& use = uses_[begin + item];
      UseLogits(input.rows[use.row], logits_ + item * logits_stride_, worker, &use,
                &output->rows[use.row]);
    });
  }
  pool_->EndStep();
  for (LogitUse& use : uses_) {
    RowOutput& row = output->rows[use.row];
    if (row.status.ok()) row.status = std::move(use.status);
  }
  return OkStatus();
}

void CpuExecutor::UseLogits(const StepRow& row, float* logits, int32_t worker, LogitUse* use,
                            RowOutput* output) {
  const std::span<float> row_logits(logits, info_.vocab_size);
  if (use->prompt) {
    // The known token that follows, if one does; the last prompt token's own follower is sampled.
    const int32_t next = use->position + 1;
    const TokenId token = next < row.prompt_tokens ? row.sequence[next] : -1;
    const LogNormalizer normalizer = Normalize(compute_.kernels().elementwise, row_logits);
    use->status = FillLogprobs(normalizer, row_logits, token, row.prompt_logprobs,
                               &output->prompt[use->position - row.begin]);
    if (!use->status.ok()) return;
  }
  if (use->sample) samplers_[worker].Sample(row, row_logits, output);
}

}  // namespace

Result<std::unique_ptr<Executor>> MakeCpuExecutor(std::shared_ptr<const Checkpoint> checkpoint,
                                                  const CpuExecutorOptions& options) {
  const uint64_t config_hash = ConfigHash(*checkpoint);
  auto pool = std::make_unique<ThreadPool>(options.threads);
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<Model> model,
      LoadModel(std::move(checkpoint),
                {options.compute, pool.get(), options.packed_cache, options.sizes_only}));
  auto executor = std::make_unique<CpuExecutor>(std::move(pool), std::move(model), options);
  LOCKSTEP_RETURN_IF_ERROR(executor->Prepare(config_hash));
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace lockstep
