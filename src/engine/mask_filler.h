// MaskFiller: fills the token masks of rows with grammars on threads of its own while the executor
// is at the forward pass, which does not need them yet. Not: what may come next (grammar/).
//
// The threads start with the first mask. Thread-safety: all methods from the engine's thread alone.
// Ownership: borrows the matchers, from Add until the next Wait returns.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "grammar/grammar.h"

namespace lockstep {

class MaskFiller {
 public:
  // At most `rows` masks are filled at a time.
  explicit MaskFiller(int32_t rows);
  ~MaskFiller();
  MaskFiller(const MaskFiller&) = delete;
  MaskFiller& operator=(const MaskFiller&) = delete;

  // Has the mask filled, at the latest by Wait. Takes no memory.
  void Add(TokenMatcher* matcher);
  // Returns when all masks are filled; fills those that nobody has begun with.
  void Wait();

 private:
  void Start();
  void WorkerMain();
  // Fills one. REQUIRES: there is one that nobody has begun with.
  void FillNext(std::unique_lock<std::mutex>* lock);

  std::mutex mutex_;
  std::condition_variable more_;
  std::condition_variable filled_;
  std::vector<TokenMatcher*> matchers_;  // since the last Wait
  size_t begun_ = 0;                     // of them
  size_t done_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace lockstep
