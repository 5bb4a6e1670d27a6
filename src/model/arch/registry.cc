#include "model/arch/registry.h"

#include "model/arch/llama/llama.h"

namespace lockstep {
namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", llama::LlamaModel::Load},
};

}  // namespace

std::span<const Architecture> Architectures() { return kArchitectures; }

}  // namespace lockstep
