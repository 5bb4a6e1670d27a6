// The engine without its thread: one call of RunOneStep is one turn of the loop (arrivals, cancels,
// deadlines, admission, plan, compute, commit, emit). engine.cc runs it on a thread; tests drive it
// step by step.
//
// Failure: a row whose RowOutput says so ends alone. A step that fails or throws is computed again
// from the same positions; after kMaxStepAttempts in a row its rows are halved until those that
// fail are alone, and only those end. When no part of a step can be computed, nor one token of no
// request, the core is dead: it ends every request with kError and takes no step any more.
// Without memory for what belongs to one request, that request ends.
//
// Thread-safety: one thread, which may call back into Submit and Cancel from within
// EventSink::Offer; limits(), info(), options(), stats() and healthy() from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "cache/kv_manager.h"
#include "engine/engine.h"
#include "engine/mask_filler.h"
#include "engine/prefix_transfer.h"
#include "engine/request.h"
#include "engine/request_check.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "engine/stats.h"
#include "engine/step_pace.h"
#include "executor/executor.h"
#include "text/tokenizer.h"

namespace lockstep {

class EngineCore {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Clock = std::function<TimePoint()>;

  static constexpr int32_t kMaxStepAttempts = 3;

  // Sizes and allocates the cache. Errors: kInvalidArgument for options out of range or beyond what
  // the executor takes, kResourceExhausted for a cache too small, and what AllocateCache says.
  static Result<std::unique_ptr<EngineCore>> Create(std::unique_ptr<Executor> executor,
                                                    std::shared_ptr<const Tokenizer> tokenizer,
                                                    EngineOptions options,
                                                    Clock now = std::chrono::steady_clock::now);

  // What CheckRequest needs.
  const RequestLimits& limits() const { return limits_; }
  const ExecutorInfo& info() const { return executor_->info(); }
  const EngineOptions& options() const { return options_; }

  // All that the request needs of memory on its way in, its id excepted. Any thread. REQUIRES:
  // CheckRequest answered `max_tokens`.
  std::unique_ptr<Sequence> MakeSequence(GenerationRequest request, int32_t max_tokens,
                                         TimePoint submitted) const;
  // Takes a request at the next step. REQUIRES: ids ascend.
  void Submit(std::unique_ptr<Sequence> sequence);
  // Ends a request at the next step with kCancelled; unknown or finished ids are ignored.
  void Cancel(RequestId id);
  // Ends every request at the next step with kCancelled and `why`.
  void CancelAll(Status why);

  // One turn of the loop. True: there may be more to do at once. False: nothing until a request, a
  // cancel, a drained sink or NextDeadline.
  bool RunOneStep();

  // Ends every request with kError; for what the loop cannot survive. Calls options.on_fatal.
  void Die(Status why);

  bool idle() const;  // no request is left
  int32_t running() const { return static_cast<int32_t>(scheduler_.running().size()); }
  int32_t waiting() const;                        // submitted and not yet admitted
  std::optional<TimePoint> NextDeadline() const;  // of a request that is left
  const KvManager& kv() const { return *kv_; }
  // PrefixTransfer's numbers; 0 without a prefix store.
  uint64_t last_prefix_number() const { return transfer_ ? transfer_->last_number() : 0; }
  uint64_t prefixes_handed_over() const { return transfer_ ? transfer_->handed_over() : 0; }

  bool healthy() const { return healthy_.load(std::memory_order_acquire); }
  EngineStats stats() const;

 private:
  struct Outgoing {
    Sequence* sequence = nullptr;
    GenerationEvent event;
  };

  EngineCore(std::unique_ptr<Executor> executor, std::shared_ptr<const Tokenizer> tokenizer,
             EngineOptions options, std::unique_ptr<KvManager> kv, Clock now);

  void TakeArrivals();
  bool Enter(std::unique_ptr<Sequence>* arrival);
  void Refuse(Sequence* sequence);
  void TakeCancels();
  void ExpireDeadlines(TimePoint now);
  void ResumeReadySinks();
  void AdmitWaiting(TimePoint now);
  // Computes and commits the plan. An error: the core is dead.
  Status RunPlan();
  Status TryRows(std::span<const PlannedRow> rows, int32_t attempts);
  Status Bisect(std::span<const PlannedRow> rows, const Status& why);
  Status Blame(Sequence* sequence, const Status& why);
  Status Probe();
  Status Compute(std::span<const PlannedRow> rows);
  Status StepExecutor();
  void Commit(std::span<const PlannedRow> rows, TimePoint now);
  void CommitRow(const PlannedRow& planned, RowOutput* output, TimePoint now);
  void Leave(Sequence* sequence, TimePoint now);
  void EndSequence(Sequence* sequence, FinishReason reason, Status status);
  void EndAll(FinishReason reason, const Status& status);
  void Deliver();
  bool TakeInPrefixes();
  void CountAdopted(int32_t tokens);
  void Publish();
  // engine_core_trace.cc; nothing without a tracer.
  void TraceStep(TimePoint begin, TimePoint planned, TimePoint computed, TimePoint end);
  void TraceRows(std::span<const PlannedRow> rows, TimePoint begin, TimePoint end);
  void TraceStart(const Sequence& sequence, TimePoint now);
  void TraceFirstToken(const Sequence& sequence, TimePoint now);
  void TraceEnd(const Sequence& sequence, TimePoint now);

  const std::unique_ptr<Executor> executor_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const EngineOptions options_;
  const RequestLimits limits_;
  const std::unique_ptr<KvManager> kv_;
  const Clock now_;
  const std::unique_ptr<PrefixTransfer> transfer_;  // null: prefixes are kept in the cache alone
  Scheduler scheduler_;
  StepPace pace_;

  std::unordered_map<RequestId, Sequence*> sequences_;  // live ones
  std::vector<std::unique_ptr<Sequence>> arrivals_;
  std::vector<std::unique_ptr<Sequence>> entering_;  // of TakeArrivals
  std::vector<RequestId> cancels_;
  Status cancel_all_;  // not OK: at the next step
  // Room for all live sequences is made when one arrives, so that ending one needs no memory.
  std::vector<std::unique_ptr<Sequence>> ended_;  // until their last event is delivered
  std::vector<Outgoing> outgoing_;                // at most one a sequence
  std::vector<Sequence*> everyone_;               // of EndAll

  // Of the step in the making; reused.
  std::vector<Sequence*> started_;
  StepPlan plan_;
  StepInput input_;
  StepOutput output_;
  bool worked_ = false;  // a part of the step that failed could be computed
  Status fatal_;
  // Made beforehand: where they are needed there may be no memory for them.
  const Status out_of_memory_ = OutOfMemory();
  const Status too_late_{StatusCode::kDeadlineExceeded, "the request's deadline has passed"};
  std::atomic<bool> healthy_ = true;

  MaskFiller masks_;  // ends before the sequences do
  EngineStats stats_;
  TimePoint work_left_since_{};  // the epoch: none was left
  mutable std::mutex published_mutex_;
  EngineStats published_;  // guarded by published_mutex_
};

}  // namespace lockstep
