#include "apps/serving/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "apps/common/gguf_vocabulary_from_file.h"
#include "apps/serving/template_trial.h"
#include "apps/serving/version.h"
#include "base/log.h"
#include "cache/disk/disk_store.h"
#include "executor/cpu/cpu_executor.h"
#include "executor/cpu/kv_store.h"
#include "platform/memory.h"
#include "weights/checkpoint.h"

namespace lockstep {
namespace {

Result<std::shared_ptr<const Tokenizer>> LoadTokenizer(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary,
                              GgufVocabularyFromMetadata(checkpoint.gguf()->metadata()));
    auto tokenizer = Tokenizer::FromGguf(vocabulary);
    if (!tokenizer.ok()) return tokenizer.status().WithContext(checkpoint.path());
    return tokenizer;
  }
  if (checkpoint.config() == nullptr) {
    return InvalidArgument(checkpoint.path() +
                               ": a lone .safetensors file has neither configuration nor "
                               "tokenizer; give the folder with config.json and tokenizer.json",
                           "model");
  }
  return Tokenizer::FromHfFolder(checkpoint.path());
}

// Null when the checkpoint has no template.
Result<std::shared_ptr<const ChatTemplate>> LoadChatTemplate(const Checkpoint& checkpoint,
                                                             const Tokenizer& tokenizer) {
  std::string source = tokenizer.chat_template().value_or("");
  if (checkpoint.gguf() != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        source, checkpoint.gguf()->metadata().GetStringOr("tokenizer.chat_template", ""));
  }
  if (source.empty()) return std::shared_ptr<const ChatTemplate>();
  auto compiled = ChatTemplate::Compile(
      source, {std::string(tokenizer.bos_text()), std::string(tokenizer.eos_text())});
  if (!compiled.ok()) return compiled.status().WithContext(checkpoint.path() + ": chat template");
  // Other requests, and perhaps other conversations, can be answered all the same.
  if (const Status tried = TryChatTemplate(**compiled); !tried.ok()) {
    LogWarning("{}: the chat template cannot be used in full: {}", checkpoint.path(),
               tried.message());
  }
  return compiled;
}

// The union of what the tokenizer's files and the model's configuration call an end.
Result<std::vector<TokenId>> EndOfSequenceIds(const Checkpoint& checkpoint,
                                              const Tokenizer& tokenizer, int32_t vocab_size) {
  std::set<TokenId> ids(tokenizer.eos_ids().begin(), tokenizer.eos_ids().end());
  if (checkpoint.config() != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int32_t> configured, checkpoint.HfEosTokenIds());
    ids.insert(configured.begin(), configured.end());
  }
  // Some checkpoints name ids that their embedding does not have; they can never be sampled.
  std::erase_if(ids, [&](TokenId id) { return id < 0 || id >= vocab_size; });
  return std::vector<TokenId>(ids.begin(), ids.end());
}

int32_t StepTokens(const ModelOptions& options) {
  return std::max(options.step_tokens, options.max_rows);
}

Result<std::unique_ptr<Executor>> MakeExecutor(const ModelOptions& options,
                                               std::shared_ptr<const Checkpoint> checkpoint) {
  CpuExecutorOptions cpu;
  cpu.threads = ThreadsOf(options);
  cpu.compute = options.compute == "f32"    ? ComputeClass::kF32
                : options.compute == "int8" ? ComputeClass::kInt8
                                            : ComputeClass::kAuto;
  const std::string kv = !options.kv.empty()        ? options.kv
                         : options.compute == "f32" ? "f32"
                                                    : "bf16";
  const auto scheme = KvSchemeByName(kv);
  if (!scheme) return InvalidArgument("no KV cache scheme is called '" + kv + "'", "kv");
  cpu.kv = *scheme;
  cpu.packed_cache = options.packed_cache;
  cpu.sizes_only = options.sizes_only;
  cpu.max_context = options.context;
  cpu.max_step_tokens = StepTokens(options);
  cpu.max_step_rows = options.max_rows;
  return MakeCpuExecutor(std::move(checkpoint), cpu);
}

// The kernels that LOCKSTEP_ISA names, or this CPU's best; here, so that a wrong name is an error
// in time.
Status SelectKernels() {
  const char* isa = std::getenv("LOCKSTEP_ISA");
  return kernels::SelectTable(isa != nullptr ? isa : "");
}

// The folder of --prefix-dir; null without one.
Result<std::unique_ptr<PrefixFolder>> OpenPrefixFolder(const ModelOptions& options) {
  if (options.prefix_dir.empty()) return std::unique_ptr<PrefixFolder>();
  if (options.no_prefix_cache) {
    return InvalidArgument("--prefix-dir needs the prefix cache that --no-prefix-cache turns off",
                           "prefix-dir");
  }
  auto folder = PrefixFolder::Open(options.prefix_dir);
  if (folder.ok()) return folder;
  return Status(folder.status().code(), "--prefix-dir: " + folder.status().message(), "prefix-dir");
}

// All that the bytes of a block depend on besides its tokens. The version stands for the kernels.
std::string PrefixIdentity(const ExecutorInfo& info) {
  std::string identity = std::string(kVersion) + " " + info.cache_identity;
  for (const CacheGroupSpec& group : info.cache_groups) {
    identity += fmt::format(" {}:{}:{}:{}:{}:{}", static_cast<int>(group.kind), group.scheme,
                            group.block_tokens, group.block_bytes, group.window, group.sinks);
  }
  return identity;
}

Result<std::shared_ptr<PrefixStore>> OpenPrefixStore(std::unique_ptr<PrefixFolder> folder,
                                                     const ModelOptions& options,
                                                     const ExecutorInfo& info) {
  if (folder == nullptr) return std::shared_ptr<PrefixStore>();
  constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;
  DiskStoreOptions disk;
  disk.bytes_limit = static_cast<int64_t>(options.prefix_dir_gib * kBytesPerGib);
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<PrefixStore> store,
      MakeDiskStore(std::move(folder), PrefixIdentity(info), std::move(disk)));
  const PrefixStoreStats found = store->stats();
  LogInfo("{}: {} entries of prefixes, {} of {} MiB", options.prefix_dir, found.entries,
          found.bytes >> 20, found.bytes_limit >> 20);
  return store;
}

std::string NameOf(const std::string& path) {
  std::filesystem::path p(path);
  if (!p.has_filename()) p = p.parent_path();  // a trailing slash
  return p.extension() == ".gguf" ? p.stem().string() : p.filename().string();
}

}  // namespace

int32_t ThreadsOf(const ModelOptions& options) {
  return options.threads > 0 ? options.threads : AvailableCores();
}

Result<std::unique_ptr<Executor>> LoadExecutor(const ModelOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(SelectKernels());
  LOCKSTEP_ASSIGN_OR_RETURN(auto checkpoint, Checkpoint::Open(options.model));
  return MakeExecutor(options, std::move(checkpoint));
}

Result<LoadedModel> LoadForServing(const ModelOptions& options, EngineOptions engine) {
  LOCKSTEP_RETURN_IF_ERROR(SelectKernels());
  LOCKSTEP_ASSIGN_OR_RETURN(auto prefix_folder, OpenPrefixFolder(options));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<const Checkpoint> checkpoint,
                            Checkpoint::Open(options.model));
  LoadedModel loaded;
  loaded.id = NameOf(options.model);
  LOCKSTEP_ASSIGN_OR_RETURN(loaded.tokenizer, LoadTokenizer(*checkpoint));
  LOCKSTEP_ASSIGN_OR_RETURN(loaded.chat_template, LoadChatTemplate(*checkpoint, *loaded.tokenizer));

  const int32_t step_tokens = StepTokens(options);
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, MakeExecutor(options, checkpoint));

  LOCKSTEP_ASSIGN_OR_RETURN(engine.eos_ids, EndOfSequenceIds(*checkpoint, *loaded.tokenizer,
                                                             executor->info().vocab_size));
  LOCKSTEP_ASSIGN_OR_RETURN(loaded.memory, PlanMemory(options, executor->info()));
  engine.kv_bytes = loaded.memory.kv;
  engine.max_rows = options.max_rows;
  engine.step_tokens = step_tokens;
  engine.step_budget = std::chrono::milliseconds(options.step_budget_ms);
  engine.prefix_cache = !options.no_prefix_cache;
  LOCKSTEP_ASSIGN_OR_RETURN(engine.prefix_store,
                            OpenPrefixStore(std::move(prefix_folder), options, executor->info()));
  LogInfo("{}: {}, {} MiB of weights, {} MiB of KV cache, context {}, {} threads, {}", loaded.id,
          executor->info().fingerprint, executor->info().weight_bytes >> 20, engine.kv_bytes >> 20,
          executor->info().max_context, ThreadsOf(options), kernels::Table().isa);
  LOCKSTEP_ASSIGN_OR_RETURN(
      loaded.engine, Engine::Create(std::move(executor), loaded.tokenizer, std::move(engine)));
  return loaded;
}

}  // namespace lockstep
