// Decides which sequences run and what each step computes. Knows tokens and positions; neither
// texts nor cache kinds, and computes nothing. docs/scheduling.md has the rules with their reasons.
//
// Admission: strictly first come first served, while there is a row free and the cache can take the
// worst case (prompt and output). Nobody overtakes the one that waits for memory.
//
// A step's plan, within the token budget:
// 1. every decoding row, one token each;
// 2. of what is left, up to half (rounded up) for the oldest prompt;
// 3. the rest for the other prompts, those with the fewest tokens left first;
// 4. what they leave, for the oldest prompt again.
// So every running row advances in every step, a prompt delays the others by no more than one
// budget's work a step, short prompts pass a long one, and the long one is never starved.
//
// Before that, prompts take over what the cache has of them; and of those that would compute the
// same tokens next, one does and the others wait for it. That is settled anew in every plan: nobody
// waits for a row that has left, and the one that all others wait for never waits itself. A prompt
// that comes from elsewhere (prefix_transfer.h) is waited for like one that is computed.
//
// Not thread-safe: the engine's thread alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "cache/kv_manager.h"
#include "engine/sequence.h"

namespace lockstep {

struct PlannedRow {
  Sequence* sequence = nullptr;
  int32_t begin = 0;
  int32_t count = 0;
  bool sample = false;  // the span ends with the last known token, and another one is wanted
};

struct StepPlan {
  std::vector<PlannedRow> rows;
  int32_t tokens = 0;
  int32_t decoding = 0;  // rows of them that decode, a token each
  int32_t adopted = 0;   // prompt tokens that nobody has to compute, found while planning
};

class Scheduler {
 public:
  // Borrows `kv`. `load`: asked of each prompt that would be computed, whether it comes from
  // elsewhere instead (then it is loading, and takes no steps until it is not); null: none does.
  // REQUIRES: step_tokens >= max_rows >= 1.
  Scheduler(KvManager* kv, int32_t max_rows, int32_t step_tokens,
            std::function<int32_t(int32_t)> chunk_cut, std::function<bool(Sequence*)> load = {});

  // Takes the sequence, or throws std::bad_alloc and leaves it.
  void Add(std::unique_ptr<Sequence>&& sequence);

  // Starts the waiting sequences that fit and appends them to `started`. Throws std::bad_alloc when
  // there is no memory for the first one that still waits.
  void Admit(std::vector<Sequence*>* started);

  // Plans a step over the running sequences that are not paused and makes their block tables cover
  // it; beside decoding rows at most `prompt_tokens` (>= 1) of prompts. An empty plan: nothing can
  // run. Computing the same plan twice is legal.
  void Plan(StepPlan* plan, int32_t prompt_tokens = std::numeric_limits<int32_t>::max());

  // Takes a sequence out, wherever it is, with its blocks and its reservation.
  std::unique_ptr<Sequence> Remove(Sequence* sequence);

  // What the first waiting sequence lacked when Admit last looked: a row, or memory.
  bool waits_for_row() const {
    return !waiting_.empty() && static_cast<int32_t>(running_.size()) >= max_rows_;
  }
  bool waits_for_memory() const { return !waiting_.empty() && lacks_memory_; }

  const std::deque<std::unique_ptr<Sequence>>& waiting() const { return waiting_; }
  const std::vector<std::unique_ptr<Sequence>>& running() const { return running_; }

 private:
  void Adopt(Sequence* sequence, StepPlan* plan);
  bool Waits(size_t joiner) const;
  bool WaitsForLoader(const Sequence& joiner) const;
  void LeaveOutLoading();
  void LeaveOutWaiting();
  void PlanChunks(int32_t budget, StepPlan* plan);
  void AddRow(Sequence* sequence, int32_t count, StepPlan* plan);

  KvManager* const kv_;
  const int32_t max_rows_;
  const int32_t step_tokens_;
  const std::function<int32_t(int32_t)> chunk_cut_;
  const std::function<bool(Sequence*)> load_;
  std::deque<std::unique_ptr<Sequence>> waiting_;   // by arrival
  std::vector<std::unique_ptr<Sequence>> running_;  // by arrival
  std::vector<Sequence*> joiners_;                  // of the plan in the making, by arrival
  std::vector<Sequence*> loaders_;                  // prompts that come from elsewhere, likewise
  std::vector<Sequence*> starters_;                 // joiners that do not wait
  bool lacks_memory_ = false;
};

}  // namespace lockstep
