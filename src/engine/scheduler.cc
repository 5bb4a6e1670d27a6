#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

template <typename List>
std::unique_ptr<Sequence> TakeFrom(List* list, const Sequence* sequence) {
  const auto at = std::find_if(list->begin(), list->end(),
                               [&](const auto& entry) { return entry.get() == sequence; });
  if (at == list->end()) return nullptr;
  std::unique_ptr<Sequence> taken = std::move(*at);
  list->erase(at);
  return taken;
}

}  // namespace

Scheduler::Scheduler(KvManager* kv, int32_t max_rows, int32_t step_tokens,
                     std::function<int32_t(int32_t)> chunk_cut, std::function<bool(Sequence*)> load)
    : kv_(kv),
      max_rows_(max_rows),
      step_tokens_(step_tokens),
      chunk_cut_(std::move(chunk_cut)),
      load_(std::move(load)) {
  LOCKSTEP_CHECK(max_rows >= 1 && step_tokens >= max_rows);
  running_.reserve(static_cast<size_t>(max_rows));
  joiners_.reserve(static_cast<size_t>(max_rows));
  loaders_.reserve(static_cast<size_t>(max_rows));
  starters_.reserve(static_cast<size_t>(max_rows));
}

void Scheduler::Add(std::unique_ptr<Sequence>&& sequence) {
  waiting_.push_back(std::move(sequence));
}

void Scheduler::Admit(std::vector<Sequence*>* started) {
  lacks_memory_ = false;
  while (!waiting_.empty() && static_cast<int32_t>(running_.size()) < max_rows_) {
    const Sequence& first = *waiting_.front();
    const auto slot = kv_->Admit(first.worst_case_tokens(), first.request().cache_salt);
    if (!slot) {
      lacks_memory_ = true;
      return;
    }
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    running_.back()->Start(*slot);
    started->push_back(running_.back().get());
  }
}

void Scheduler::Plan(StepPlan* plan, int32_t prompt_tokens) {
  plan->rows.clear();
  plan->tokens = 0;
  plan->decoding = 0;
  plan->adopted = 0;
  joiners_.clear();
  loaders_.clear();
  for (const auto& sequence : running_) {
    if (sequence->paused()) continue;
    if (sequence->loading()) {
      loaders_.push_back(sequence.get());
    } else if (sequence->state() == SequenceState::kDecoding) {
      AddRow(sequence.get(), 1, plan);
    } else {
      Adopt(sequence.get(), plan);
      joiners_.push_back(sequence.get());
    }
  }
  plan->decoding = plan->tokens;
  if (load_) LeaveOutLoading();
  if (joiners_.empty()) return;
  LeaveOutWaiting();
  const int32_t left = step_tokens_ - plan->tokens;
  PlanChunks(plan->decoding > 0 ? std::min(left, prompt_tokens) : left, plan);
}

void Scheduler::Adopt(Sequence* sequence, StepPlan* plan) {
  const int64_t computed = kv_->Adopt(sequence->slot(), sequence->tokens(), sequence->adoptable());
  plan->adopted += sequence->Adopt(static_cast<int32_t>(computed));
}

bool Scheduler::WaitsForLoader(const Sequence& joiner) const {
  for (const Sequence* loader : loaders_) {
    if (kv_->LearnsFrom(joiner.slot(), joiner.tokens(), joiner.adoptable(), loader->slot(),
                        loader->tokens())) {
      return true;
    }
  }
  return false;
}

void Scheduler::LeaveOutLoading() {
  std::erase_if(joiners_, [&](Sequence* joiner) {
    if (WaitsForLoader(*joiner)) return true;
    if (!load_(joiner)) return false;
    loaders_.push_back(joiner);
    return true;
  });
}

// Whether another one computes what this one needs next: one that is in the midst of it, else the
// one that came first.
bool Scheduler::Waits(size_t joiner) const {
  const Sequence& self = *joiners_[joiner];
  for (size_t i = 0; i < joiners_.size(); ++i) {
    const Sequence& other = *joiners_[i];
    if (other.computed() <= self.computed() && i >= joiner) continue;
    if (kv_->LearnsFrom(self.slot(), self.tokens(), self.adoptable(), other.slot(),
                        other.tokens())) {
      return true;
    }
  }
  return false;
}

void Scheduler::LeaveOutWaiting() {
  starters_.clear();
  for (size_t i = 0; i < joiners_.size(); ++i) {
    if (!Waits(i)) starters_.push_back(joiners_[i]);
  }
  LOCKSTEP_CHECK(!starters_.empty());
}

void Scheduler::PlanChunks(int32_t budget, StepPlan* plan) {
  Sequence* const oldest = starters_.front();
  int32_t oldest_count = std::min(oldest->uncomputed(), budget - budget / 2);
  budget -= oldest_count;
  std::sort(starters_.begin() + 1, starters_.end(), [](const Sequence* a, const Sequence* b) {
    if (a->uncomputed() != b->uncomputed()) return a->uncomputed() < b->uncomputed();
    return a->id() < b->id();
  });
  const size_t first_chunk = plan->rows.size();
  for (auto it = starters_.begin() + 1; it != starters_.end() && budget > 0; ++it) {
    const int32_t count = std::min((*it)->uncomputed(), budget);
    budget -= count;
    AddRow(*it, count, plan);
  }
  oldest_count += std::min(oldest->uncomputed() - oldest_count, budget);
  AddRow(oldest, oldest_count, plan);
  LOCKSTEP_CHECK(plan->rows.size() > first_chunk && plan->tokens <= step_tokens_);
}

void Scheduler::AddRow(Sequence* sequence, int32_t count, StepPlan* plan) {
  const int32_t begin = sequence->computed();
  if (chunk_cut_ && count > 1) count = std::clamp(chunk_cut_(count), 1, count);
  if (sequence->state() == SequenceState::kComputingPrompt) {
    const int64_t end = kv_->ChunkEnd(sequence->slot(), begin + count, sequence->stable());
    count = static_cast<int32_t>(end) - begin;
  }
  PlannedRow row;
  row.sequence = sequence;
  row.begin = begin;
  row.count = count;
  row.sample = count == sequence->uncomputed() && sequence->wants_tokens();
  kv_->Reserve(sequence->slot(), row.begin + count);
  plan->rows.push_back(row);
  plan->tokens += count;
}

std::unique_ptr<Sequence> Scheduler::Remove(Sequence* sequence) {
  if (auto waiting = TakeFrom(&waiting_, sequence)) return waiting;
  auto running = TakeFrom(&running_, sequence);
  LOCKSTEP_CHECK(running != nullptr);
  kv_->Release(running->slot(), running->state() == SequenceState::kFailed);
  return running;
}

}  // namespace lockstep
