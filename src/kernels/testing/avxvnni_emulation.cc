// Linked into a test program, makes it run the AVX-VNNI table on any CPU with AVX2: Cpu() is
// defined here, says that the instructions are there, and has a handler compute vpdpbusd where the
// CPU refuses it. A CPU that has it runs its own.
#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "platform/cpu_features.h"

namespace lockstep {
namespace {

// VEX.256.66.0F38.W0 50 /r: vpdpbusd ymm1, ymm2, ymm3/m256.
struct Instruction {
  int target = 0, unsigned_source = 0, signed_source = 0;  // signed_source < 0: in memory
  const uint8_t* memory = nullptr;
  int bytes = 0;
};

uint64_t General(const ucontext_t& context, int number) {
  constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(context.uc_mcontext.gregs[kOrder[number]]);
}

bool Decode(const ucontext_t& context, Instruction* out) {
  const auto* code = reinterpret_cast<const uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x87) != 5 || code[3] != 0x50) {
    return false;
  }
  const int r = (~code[1] >> 7 & 1) * 8, x = (~code[1] >> 6 & 1) * 8, b = (~code[1] >> 5 & 1) * 8;
  const int mode = code[4] >> 6, rm = code[4] & 7;
  out->target = (code[4] >> 3 & 7) | r;
  out->unsigned_source = ~code[2] >> 3 & 15;
  out->bytes = 5;
  if (mode == 3) {
    out->signed_source = rm | b;
    return true;
  }
  out->signed_source = -1;
  uint64_t address = 0;
  int base = rm;
  if (rm == 4) {
    const uint8_t sib = code[out->bytes++];
    base = sib & 7;
    const int index = (sib >> 3 & 7) | x;
    if (index != 4) address += General(context, index) << (sib >> 6);
  }
  const bool no_base = mode == 0 && base == 5;
  int32_t displacement = 0;
  if (mode == 1) {
    displacement = static_cast<int8_t>(code[out->bytes++]);
  } else if (mode == 2 || no_base) {
    std::memcpy(&displacement, code + out->bytes, 4);
    out->bytes += 4;
  }
  if (!no_base) {
    address += General(context, base | b);
  } else if (rm == 5) {
    address += reinterpret_cast<uint64_t>(code + out->bytes);
  }
  out->memory = reinterpret_cast<const uint8_t*>(address + static_cast<int64_t>(displacement));
  return true;
}

// The 256-bit registers in a signal's frame: the layout of XSAVE, not compacted.
class Registers {
 public:
  explicit Registers(const ucontext_t& context)
      : low_(context.uc_mcontext.fpregs->_xmm[0].element),
        state_(reinterpret_cast<std::byte*>(context.uc_mcontext.fpregs)) {
    uint64_t present = 0;
    std::memcpy(&present, state_ + kPresent, 8);
    if ((present & kHighPresent) == 0) {  // they are all zero, whatever memory says
      std::memset(state_ + kHigh, 0, 16 * 16);
      present |= kHighPresent;
      std::memcpy(state_ + kPresent, &present, 8);
    }
  }

  void Read(int number, void* to) const {
    std::memcpy(to, low_ + 4 * number, 16);
    std::memcpy(static_cast<std::byte*>(to) + 16, state_ + kHigh + 16 * number, 16);
  }
  void Write(int number, const void* from) {
    std::memcpy(low_ + 4 * number, from, 16);
    std::memcpy(state_ + kHigh + 16 * number, static_cast<const std::byte*>(from) + 16, 16);
  }

 private:
  static constexpr size_t kPresent = 512, kHigh = 576;
  static constexpr uint64_t kHighPresent = 4;
  uint32_t* low_;
  std::byte* state_;
};

void Compute(const Instruction& instruction, Registers* registers) {
  uint8_t a[32];
  int8_t b[32];
  int32_t sum[8];
  registers->Read(instruction.unsigned_source, a);
  if (instruction.signed_source < 0) {
    std::memcpy(b, instruction.memory, 32);
  } else {
    registers->Read(instruction.signed_source, b);
  }
  registers->Read(instruction.target, sum);
  for (int i = 0; i < 32; ++i) sum[i / 4] += a[i] * b[i];
  registers->Write(instruction.target, sum);
}

void OnIllegalInstruction(int, siginfo_t*, void* data) {
  auto& context = *static_cast<ucontext_t*>(data);
  Instruction instruction;
  if (!Decode(context, &instruction)) {
    signal(SIGILL, SIG_DFL);  // and happens again
    return;
  }
  Registers registers(context);
  do {  // and those that follow: a signal costs far more than what it computes
    Compute(instruction, &registers);
    context.uc_mcontext.gregs[REG_RIP] += instruction.bytes;
  } while (Decode(context, &instruction));
}

CpuFeatures Emulated() {
  CpuFeatures features;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return features;
  struct sigaction action = {};
  action.sa_sigaction = OnIllegalInstruction;
  action.sa_flags = SA_SIGINFO;
  LOCKSTEP_CHECK(sigaction(SIGILL, &action, nullptr) == 0);
  features.avx2_fma_f16c = true;
  features.avx_vnni = true;
  return features;
}

}  // namespace

const CpuFeatures& Cpu() {
  static const CpuFeatures features = Emulated();
  return features;
}

}  // namespace lockstep
