// Counters of the engine, as a plain copyable record. Durations in seconds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cache/prefix_store.h"

namespace lockstep {

// A histogram with fixed upper bounds; counts[i] holds values <= bounds[i], the last one the rest.
struct Histogram {
  std::vector<double> bounds;
  std::vector<uint64_t> counts;  // bounds.size() + 1
  double sum = 0;
  uint64_t count = 0;
  void Add(double value);
};

// What became of prefixes that are kept beside the cache (prefix_transfer.h).
struct PrefixTransferStats {
  uint64_t hits = 0;      // sequences that went on from such a prefix
  uint64_t misses = 0;    // those that found nothing more there
  uint64_t tokens = 0;    // restored
  uint64_t failures = 0;  // restores that were given up, what was found being no good
};

struct EngineStats {
  // Gauges.
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t running_open_ended = 0;  // without max_tokens: they reserve the rest of the context
  // What the first of those that wait lacks; at most one is true.
  bool waits_for_row = false;
  bool waits_for_memory = false;
  int64_t kv_bytes_budget = 0;
  int64_t kv_bytes_reserved = 0;  // worst case of admitted rows
  int64_t kv_bytes_used = 0;      // blocks of running sequences, a shared one counted once
  int64_t kv_bytes_cached = 0;    // blocks kept for prefixes that nobody uses now
  // Counters; they never fall.
  uint64_t submitted = 0;
  uint64_t finished_stop = 0;
  uint64_t finished_length = 0;
  uint64_t finished_cancelled = 0;
  uint64_t finished_error = 0;
  uint64_t prompt_tokens = 0;  // computed or cached
  uint64_t generated_tokens = 0;
  uint64_t prefix_queries = 0;    // prompt tokens that were looked for in the prefix cache
  uint64_t cached_tokens = 0;     // those that were found
  uint64_t prefix_evictions = 0;  // blocks that had to go for others
  std::optional<PrefixStoreStats> prefix_store;  // none: prefixes are kept in the cache alone
  PrefixTransferStats prefix_transfer;
  uint64_t prefix_writes_dropped = 0;  // spans that had to go before they could be saved
  uint64_t steps = 0;
  // Where the loop's time went.
  double seconds_plan = 0;
  double seconds_compute = 0;  // the executor, sampling included
  double seconds_emit = 0;
  double seconds_gap = 0;  // between steps while there was work
  Histogram time_to_first_token;
  Histogram inter_token;
  Histogram queue_wait;
  Histogram end_to_end;
};

// All zero, with the histograms' bounds set.
EngineStats EmptyEngineStats();

}  // namespace lockstep
