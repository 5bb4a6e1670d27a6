// What the HTTP server is told at start. Plain data.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/tracer.h"

namespace lockstep {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: any free one (Server::port says which)

  size_t max_body_bytes = size_t{64} << 20;            // more is 413
  size_t max_header_bytes = size_t{32} << 10;          // more is 431
  size_t max_inflight_body_bytes = size_t{512} << 20;  // over all connections; more is 503
  size_t max_connections = 1024;                       // one more is 503 and closed

  std::chrono::milliseconds idle_timeout{75'000};    // between requests; then closed silently
  std::chrono::milliseconds header_timeout{10'000};  // from a request's first byte; then 408
  // A body may take this long, plus one second for each 64 KiB that have come; then 408.
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds write_timeout{60'000};  // a write that makes no progress; then closed
  // A stream that had nothing to send for so long sends a comment.
  std::chrono::milliseconds keep_alive_interval{10'000};

  int io_threads = 1;
  // Parse, template and tokenise; one of them at least is kept for short requests (WorkQueue).
  int worker_threads = 2;

  // What the kernel may hold of an answer that the client does not read.
  int send_buffer_bytes = 256 << 10;
  // Events of one answer that may wait for a slow reader before its row pauses.
  int32_t sink_events = 64;

  // Not empty: who asks needs one of these (access.h).
  std::vector<std::string> api_keys;
  // Pages of these origins may read the answers; "*": of all.
  std::vector<std::string> cors_origins;

  std::shared_ptr<Tracer> tracer;  // null: nothing is traced
};

}  // namespace lockstep
