// The architectures that can be loaded, by the names that checkpoints call them.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "model/model.h"

namespace lockstep {

struct Architecture {
  std::string_view gguf;  // general.architecture; empty: another line has it
  std::string_view hf;    // the entry of "architectures" in config.json
  Result<std::unique_ptr<Model>> (*load)(std::shared_ptr<const Checkpoint> checkpoint,
                                         const LoadOptions& options);
};

std::span<const Architecture> Architectures();

}  // namespace lockstep
