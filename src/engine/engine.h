// The engine: takes requests from any thread, batches them continuously on one thread of its own,
// and sends each one's events to its sink. Not: HTTP, JSON, chat templates (api/ and server/), nor
// computing (executor/).
//
// The bytes of an answer depend on its request alone; see docs/determinism.md.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/tracer.h"
#include "cache/prefix_store.h"
#include "engine/request.h"
#include "engine/stats.h"
#include "executor/executor.h"
#include "text/tokenizer.h"

namespace lockstep {

struct EngineOptions {
  int64_t kv_bytes = 0;       // byte budget of the KV cache; > 0
  int32_t max_rows = 64;      // sequences that run at once
  int32_t max_queue = 1024;   // waiting requests; one more is kQueueFull
  int32_t step_tokens = 512;  // token budget of a step: running rows first, then prompt chunks
  // How long prompts may make a step that rows decode in (step_pace.h); 0: as long as it takes.
  std::chrono::milliseconds step_budget{0};
  bool prefix_cache = true;  // requests that begin alike share what was computed once
  // Where prefixes are kept beside the cache; null, or without prefix_cache: nowhere. Its identity
  // must say all that the executor's cache_identity does.
  std::shared_ptr<PrefixStore> prefix_store;
  std::vector<TokenId>
      eos_ids;  // the model's end-of-sequence ids (config, generation config, tokenizer)

  // When set, decides how many tokens of a prompt chunk to take (1..want), so that cuts can be
  // shown to change no byte.
  std::function<int32_t(int32_t want)> chunk_cut;
  // Where the engine says what it does; null: nowhere.
  std::shared_ptr<Tracer> tracer;
  // Called once, on the engine's thread, when the loop cannot go on (health turns bad; the program
  // exits).
  std::function<void(const Status&)> on_fatal;
};

class Engine {
 public:
  // Sizes the cache from the budget and starts the loop's thread.
  static Result<std::unique_ptr<Engine>> Create(std::unique_ptr<Executor> executor,
                                                std::shared_ptr<const Tokenizer> tokenizer,
                                                EngineOptions options);
  ~Engine();  // cancels what still runs and joins the loop's thread

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // All of the following are thread-safe and legal from within EventSink::Offer.

  // Queues a request. Errors, before any event: kInvalidArgument (a field out of range),
  // kContextLength, kResourceExhausted (can never fit the cache), kQueueFull, kUnavailable
  // (shutting down, or no memory for the request now).
  Result<RequestId> Submit(GenerationRequest request);
  // Ends a request with FinishReason::kCancelled within one step; unknown or finished ids are
  // ignored.
  void Cancel(RequestId id);
  // Tells the loop that a full sink was drained.
  void Wake();

  // Stops admitting, lets running and waiting requests finish until `deadline`, cancels the rest,
  // returns when none is left. From within Offer it starts this and returns at once.
  void Drain(std::chrono::steady_clock::time_point deadline);

  // Returns when every prefix that was computed and is still in the cache is durable in the prefix
  // store. Not from within Offer. Errors: kFailedPrecondition without a store, kQueueFull while
  // another call is under way, kUnavailable when the loop is dead, those of PrefixStore::Flush.
  Status FlushPrefixes(std::chrono::steady_clock::time_point deadline,
                       const std::atomic<bool>* gone = nullptr);

  bool healthy() const;       // false once the loop is dead
  EngineStats stats() const;  // a consistent copy
  const ExecutorInfo& info() const;
  const EngineOptions& options() const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
