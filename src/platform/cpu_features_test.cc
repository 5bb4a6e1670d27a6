#include "platform/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace lockstep {
namespace {

#if defined(__x86_64__)
// The kernel's list of flags, which leaves out what the operating system does not save.
std::set<std::string> KernelFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::set<std::string> flags;
    for (std::string word; words >> word;) flags.insert(word);
    return flags;
  }
  return {};
}

TEST(CpuFeatures, AgreesWithTheKernel) {
  const std::set<std::string> flags = KernelFlags();
  if (flags.empty()) GTEST_SKIP() << "no /proc/cpuinfo";
  const auto all = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (!flags.contains(name)) return false;
    }
    return true;
  };
  const bool avx2 = all({"avx", "avx2", "fma", "f16c"});
  EXPECT_EQ(Cpu().avx2_fma_f16c, avx2);
  EXPECT_EQ(Cpu().avx_vnni, avx2 && all({"avx_vnni"}));
  EXPECT_EQ(Cpu().avx512_vnni,
            avx2 && all({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"}));
}
#endif

TEST(CpuFeatures, WiderImpliesNarrower) {
  if (Cpu().avx512_vnni || Cpu().avx_vnni) {
    EXPECT_TRUE(Cpu().avx2_fma_f16c);
  }
  if (Cpu().i8mm) {
    EXPECT_TRUE(Cpu().dotprod);
  }
}

}  // namespace
}  // namespace lockstep
