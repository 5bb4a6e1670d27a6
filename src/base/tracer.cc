#include "base/tracer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace lockstep {
namespace {

constexpr size_t kWaitingSpans = size_t{1} << 16;
constexpr std::chrono::milliseconds kInterval{100};

double Microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::Open(const std::string& path) {
  File file(std::fopen(path.c_str(), "we"));
  if (file == nullptr) {
    return InvalidArgument(fmt::format("{}: {}", path, std::strerror(errno)), "trace");
  }
  return std::unique_ptr<Tracer>(new Tracer(path, std::move(file)));
}

Tracer::Tracer(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {
  waiting_.reserve(kWaitingSpans);
  writing_.reserve(kWaitingSpans);
  // Who the lanes belong to.
  std::fputs(
      "[\n"
      R"({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"engine"}},)"
      "\n"
      R"({"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"requests"}})",
      file_.get());
  thread_ = std::thread([this] { WriteSpans(); });
}

Tracer::~Tracer() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
  std::fputs("\n]\n", file_.get());
  std::fflush(file_.get());
  if (std::ferror(file_.get()) != 0) LogWarning("{}: the trace could not be written", path_);
  if (dropped_ > 0) LogWarning("{}: {} spans of the trace were dropped", path_, dropped_);
}

void Tracer::Record(const TraceSpan& span) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() == kWaitingSpans) {
    ++dropped_;
  } else {
    waiting_.push_back(span);
  }
}

void Tracer::WriteSpans() {
  bool ended = false;
  while (!ended) {
    {
      std::unique_lock lock(mutex_);
      ended_changed_.wait_for(lock, kInterval, [this] { return ended_; });
      ended = ended_;
      waiting_.swap(writing_);
    }
    for (const TraceSpan& span : writing_) Write(span);
    if (!writing_.empty()) std::fflush(file_.get());
    writing_.clear();
  }
}

void Tracer::Write(const TraceSpan& span) {
  const double at = Microseconds(span.begin - start_);
  const bool moment = span.end <= span.begin;
  std::string line =
      fmt::format(R"({{"name":"{}","ph":"{}","pid":{},"tid":{},"ts":{:.3f})", span.name,
                  moment ? "i" : "X", span.lane == 0 ? 1 : 2, span.lane, at);
  line +=
      moment ? R"(,"s":"t")" : fmt::format(R"(,"dur":{:.3f})", Microseconds(span.end - span.begin));
  line += R"(,"args":{)";
  const char* separator = "";
  for (const TraceSpan::Argument& argument : span.arguments) {
    if (argument.name == nullptr) break;
    line += fmt::format(R"({}"{}":{})", separator, argument.name, argument.value);
    separator = ",";
  }
  line += "}}";
  std::fputs(",\n", file_.get());
  std::fwrite(line.data(), 1, line.size(), file_.get());
}

}  // namespace lockstep
