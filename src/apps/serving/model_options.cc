#include "apps/serving/model_options.h"

#include <CLI/CLI.hpp>

#include "apps/common/number_between.h"
#include "executor/cpu/kv_store.h"

namespace lockstep {

void AddModelOptions(CLI::App* command, bool positional, ModelOptions* options) {
  command
      ->add_option(positional ? "model" : "-m,--model", options->model,
                   "A GGUF file, or a Hugging Face folder with config.json and safetensors")
      ->required();
  command->add_option("-t,--threads", options->threads, "Compute threads; 0: every core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      ->add_option("--compute", options->compute,
                   "auto: integer products for quantised weights, f32 otherwise; int8: refuse "
                   "weights that are not quantised; f32: everything in f32, the cache too")
      ->check(CLI::IsMember({"auto", "int8", "f32"}))
      ->capture_default_str();
  command
      ->add_option(
          "--kv", options->kv,
          "Elements of the KV cache: f32, f16, bf16 (default), q8 or q4 (affine, a scale and a "
          "bias for 32 elements of a head; q8-64, q4-64: for 64)")
      ->check(CLI::IsMember(KvSchemeNames()));
  command
      ->add_option("--packed-cache", options->packed_cache,
                   "Keep packed weights in this folder and map them at the next start")
      ->type_name("DIR");
  command
      ->add_option("--step-tokens,--max-num-batched-tokens", options->step_tokens,
                   "Tokens of one step: running rows first, then pieces of waiting prompts")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command
      ->add_option("--kv-gib", options->kv_gib,
                   "Memory for the KV cache in GiB; 0: what the rows can use, at most half of what "
                   "is free")
      ->check(NumberBetween(0, 1e6))
      ->capture_default_str();
}

void AddCapacityOptions(CLI::App* command, ModelOptions* options) {
  command
      ->add_option("-c,--context,--ctx-size,--max-model-len", options->context,
                   "Tokens a sequence may have; 0: as many as the model was made for")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command
      ->add_option("--max-rows,--parallel,--max-num-seqs", options->max_rows,
                   "Sequences that run at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
}

}  // namespace lockstep
