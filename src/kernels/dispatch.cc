#include <atomic>
#include <cstdlib>
#include <string>

#include "base/log.h"
#include "kernels/isa/tables.h"
#include "kernels/kernels.h"
#include "platform/cpu_features.h"

namespace lockstep::kernels {
namespace {

struct Candidate {
  const char* isa;
  bool (*runs)(const CpuFeatures&);
  const KernelTable& (*table)();
};

// Best first.
constexpr Candidate kCandidates[] = {
#if defined(__x86_64__)
    {"avx512", [](const CpuFeatures& cpu) { return cpu.avx512_vnni; }, Avx512Table},
    {"avxvnni", [](const CpuFeatures& cpu) { return cpu.avx_vnni; }, AvxVnniTable},
    {"avx2", [](const CpuFeatures& cpu) { return cpu.avx2_fma_f16c; }, Avx2Table},
#elif defined(__aarch64__)
    {"neon_i8mm", [](const CpuFeatures& cpu) { return cpu.i8mm; }, NeonI8mmTable},
    {"neon", [](const CpuFeatures& cpu) { return cpu.dotprod; }, NeonTable},
#endif
    {"scalar", [](const CpuFeatures&) { return true; }, ScalarTable},
};

std::atomic<const KernelTable*> selected{nullptr};

}  // namespace

std::vector<const KernelTable*> SupportedTables() {
  std::vector<const KernelTable*> tables;
  for (const Candidate& candidate : kCandidates) {
    if (candidate.runs(Cpu())) tables.push_back(&candidate.table());
  }
  return tables;
}

Status SelectTable(std::string_view isa) {
  std::string names;
  for (const KernelTable* table : SupportedTables()) {
    if (isa.empty() || isa == table->isa) {
      selected = table;
      return OkStatus();
    }
    names += (names.empty() ? "" : ", ") + std::string(table->isa);
  }
  return InvalidArgument(
      "no such instruction set here: '" + std::string(isa) + "'; this CPU runs " + names,
      "LOCKSTEP_ISA");
}

const KernelTable& Table() {
  const KernelTable* table = selected.load(std::memory_order_acquire);
  if (table == nullptr) {
    const char* isa = std::getenv("LOCKSTEP_ISA");
    const Status status = SelectTable(isa == nullptr ? "" : isa);
    if (!status.ok()) {
      LogError("{}", status.ToString());
      std::exit(2);
    }
    table = selected.load(std::memory_order_acquire);
  }
  return *table;
}

}  // namespace lockstep::kernels
