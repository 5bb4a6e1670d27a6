#include "platform/memory.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The number a file of the control group holds; nothing for "max" and for a missing file.
std::optional<int64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// The line "name: N kB" of a file under /proc, in bytes.
std::optional<int64_t> ReadKib(const char* path, std::string_view name) {
  std::ifstream file(path);
  std::string key, rest;
  while (file >> key && std::getline(file, rest)) {
    if (key == name) return std::strtoll(rest.c_str(), nullptr, 10) * 1024;
  }
  return std::nullopt;
}

int64_t MachineAvailable() {
  return ReadKib("/proc/meminfo", "MemAvailable:").value_or(kUnlimited);
}

int64_t GroupAvailable() {
  struct Files {
    const char* limit;
    const char* usage;
  };
  int64_t available = kUnlimited;
  for (const Files& files : {Files{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
                             Files{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                   "/sys/fs/cgroup/memory/memory.usage_in_bytes"}}) {
    const auto limit = ReadNumber(files.limit);
    if (!limit) continue;
    available =
        std::min(available, std::max<int64_t>(0, *limit - ReadNumber(files.usage).value_or(0)));
  }
  return available;
}

}  // namespace

int64_t AvailableMemory() { return std::min(MachineAvailable(), GroupAvailable()); }

int64_t AnonymousMemory() { return ReadKib("/proc/self/status", "RssAnon:").value_or(0); }

int32_t AvailableCores() {
  cpu_set_t set;
  int32_t cores = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = CPU_COUNT(&set);
  // "quota period" in microseconds; "max" for no quota.
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  int64_t quota = 0, period = 0;
  if (file >> quota >> period && period > 0) {
    cores = std::min<int32_t>(cores, static_cast<int32_t>((quota + period - 1) / period));
  }
  return std::max(1, cores);
}

}  // namespace lockstep
