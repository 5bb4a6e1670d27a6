#include "model/arch/registry.h"

#include "model/arch/deepseek/deepseek.h"
#include "model/arch/gemma3/gemma3.h"
#include "model/arch/llama/llama.h"
#include "model/arch/qwen/qwen.h"
#include "model/arch/qwen35/qwen35.h"

namespace lockstep {
namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", llama::LlamaModel::Load},
    {"qwen2", "Qwen2ForCausalLM", qwen::LoadQwen2},
    {"qwen3", "Qwen3ForCausalLM", qwen::LoadQwen3},
    {"qwen3moe", "Qwen3MoeForCausalLM", qwen::LoadQwen3Moe},
    {"deepseek2", "DeepseekV3ForCausalLM", deepseek::LoadDeepseekV3},
    {"", "Qwen3_5ForCausalLM", qwen35::Qwen35Model::Load},
    {"", "Qwen3_5ForConditionalGeneration", qwen35::Qwen35Model::Load},
    {"gemma3", "Gemma3ForCausalLM", gemma3::Gemma3Model::Load},
    {"", "Gemma3ForConditionalGeneration", gemma3::Gemma3Model::Load},
};

}  // namespace

std::span<const Architecture> Architectures() { return kArchitectures; }

}  // namespace lockstep
