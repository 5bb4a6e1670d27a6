// LoadedModel: everything that serving one checkpoint needs, put together: tokenizer, chat
// template, and an engine over this machine's CPU. Not thread-safe to load; its parts say for
// themselves.
#pragma once

#include <memory>
#include <string>

#include "apps/serving/memory_plan.h"
#include "apps/serving/model_options.h"
#include "base/status.h"
#include "engine/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace lockstep {

struct LoadedModel {
  std::string id;  // the file's or folder's name
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null when the checkpoint has none
  std::unique_ptr<Engine> engine;
  MemoryPlan memory;
};

// The threads that --threads asks for: 0 means every core this process may use.
int32_t ThreadsOf(const ModelOptions& options);

// The executor alone, for benchmarks. Errors name the file and the tensor, key or flag at fault.
Result<std::unique_ptr<Executor>> LoadExecutor(const ModelOptions& options);

// Errors name the file and the tensor, key or flag at fault. `engine`: its functions are kept, all
// else is set as `options` and the model say.
Result<LoadedModel> LoadForServing(const ModelOptions& options, EngineOptions engine = {});

}  // namespace lockstep
