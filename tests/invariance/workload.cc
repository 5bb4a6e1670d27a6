#include "workload.h"

#include <gtest/gtest.h>

#include <random>

#include "apps/common/gguf_vocabulary_from_file.h"
#include "cache/disk/disk_store.h"
#include "executor/cpu/cpu_executor.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace lockstep {

std::string TinyModel(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR) + "/tests/conformance/checkpoints/" + name;
}

Result<std::unique_ptr<Engine>> MakeEngine(const std::string& model_path, const Serving& serving,
                                           std::function<int32_t(int32_t)> cut) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::Open(model_path));
  std::shared_ptr<const Tokenizer> tokenizer;
  if (checkpoint->gguf() != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary,
                              GgufVocabularyFromMetadata(checkpoint->gguf()->metadata()));
    LOCKSTEP_ASSIGN_OR_RETURN(tokenizer, Tokenizer::FromGguf(vocabulary));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(tokenizer, Tokenizer::FromHfFolder(model_path));
  }
  CpuExecutorOptions cpu;
  cpu.kernels = serving.kernels;
  cpu.threads = serving.threads;
  cpu.kv = serving.kv;
  cpu.max_step_tokens = serving.step_tokens;
  cpu.max_step_rows = serving.max_rows;
  LOCKSTEP_ASSIGN_OR_RETURN(auto executor, MakeCpuExecutor(checkpoint, cpu));
  EngineOptions options;
  options.kv_bytes = int64_t{512} << 20;
  options.max_rows = serving.max_rows;
  options.step_tokens = serving.step_tokens;
  options.prefix_cache = !serving.alone;
  if (!serving.prefix_dir.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto folder, PrefixFolder::Open(serving.prefix_dir));
    DiskStoreOptions disk;
    disk.bytes_limit = int64_t{1} << 30;
    LOCKSTEP_ASSIGN_OR_RETURN(
        options.prefix_store,
        MakeDiskStore(std::move(folder), executor->info().cache_identity, std::move(disk)));
  }
  options.chunk_cut = std::move(cut);
  if (options.chunk_cut == nullptr && serving.cuts_and_order != 0) {
    options.chunk_cut = [random = std::mt19937_64(serving.cuts_and_order)](int32_t want) mutable {
      return static_cast<int32_t>(random() % want) + 1;
    };
  }
  return Engine::Create(std::move(executor), tokenizer, std::move(options));
}

std::vector<std::string> Serve(const std::string& model_path, const Serving& serving,
                               const std::vector<GenerationRequest>& requests) {
  auto engine = MakeEngine(model_path, serving);
  EXPECT_TRUE(engine.ok()) << engine.status().ToString();
  if (!engine.ok()) return {};
  const auto served = serving.alone ? ServeInTurn(**engine, requests)
                                    : ServeTogether(**engine, requests, serving.cuts_and_order);
  EXPECT_TRUE(served.ok()) << served.status().ToString();
  if (!served.ok()) return {};
  std::vector<std::string> answers;
  for (const ServedAnswer& answer : *served) answers.push_back(answer.bytes);
  return answers;
}

std::vector<ServedAnswer> ServeInTurn(const std::string& model_path, const Serving& serving,
                                      const std::vector<GenerationRequest>& requests) {
  auto engine = MakeEngine(model_path, serving);
  EXPECT_TRUE(engine.ok()) << engine.status().ToString();
  if (!engine.ok()) return {};
  auto served = ServeInTurn(**engine, requests);
  EXPECT_TRUE(served.ok()) << served.status().ToString();
  return served.ok() ? std::move(served).value() : std::vector<ServedAnswer>();
}

}  // namespace lockstep
