// Tracer: spans of time on a file that Perfetto (ui.perfetto.dev) and chrome://tracing open: the
// array form of Chrome's trace event format, whose end may be missing, so that a file whose writer
// was killed opens too.
//
// Thread-safe. Recording takes a lock and no system call, allocates nothing and never waits for the
// disk: a thread of its own writes. When that falls behind, spans are dropped and counted.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"

namespace lockstep {

struct TraceSpan {
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Argument {
    const char* name = nullptr;  // null: none, nor any after it
    int64_t value = 0;
  };

  const char* name = "";  // like all names: lives as long as the program
  int64_t lane = 0;       // 0: the engine's; else a request's id
  TimePoint begin;
  TimePoint end;  // not after begin: a moment
  std::array<Argument, 4> arguments{};
};

class Tracer {
 public:
  // Errors: the file cannot be written; the message names it.
  static Result<std::unique_ptr<Tracer>> Open(const std::string& path);
  // Writes what is left. What was dropped, or could not be written, is logged.
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  void Record(const TraceSpan& span);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;

  Tracer(std::string path, File file);
  void WriteSpans();
  void Write(const TraceSpan& span);

  const std::string path_;
  const File file_;
  const TraceSpan::TimePoint start_ = std::chrono::steady_clock::now();

  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  uint64_t dropped_ = 0;
  std::vector<TraceSpan> waiting_;
  std::vector<TraceSpan> writing_;  // the thread's
  std::thread thread_;
};

}  // namespace lockstep
