// The options that every command taking a model shares, and their flags.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace lockstep {

struct ModelOptions {
  std::string model;             // path of a GGUF file or a Hugging Face folder
  int32_t threads = 0;           // 0: every core this process may use
  std::string compute = "auto";  // auto, int8, f32
  std::string kv;                // a scheme's name; empty: f32 with --compute f32, else bf16
  std::string packed_cache;      // folder that keeps packed weights; empty: none
  int32_t context = 0;           // 0: the model's own
  int32_t max_rows = 64;
  int32_t step_tokens = 512;
  int32_t step_budget_ms = 50;
  bool no_prefix_cache = false;
  std::string prefix_dir;     // folder that keeps prefixes; empty: none
  double prefix_dir_gib = 8;  // what they may take there
  double kv_gib = 0;          // 0: as much as the rows can use, at most half of the free memory
  bool sizes_only = false;    // not a flag: CpuExecutorOptions::sizes_only
};

// The model as --model (REQUIRED) or, when `positional`, as the first argument.
void AddModelOptions(CLI::App* command, bool positional, ModelOptions* options);

// The flags that size what runs at once: --context and --max-rows.
void AddCapacityOptions(CLI::App* command, ModelOptions* options);

}  // namespace lockstep
