#include "model/model.h"

#include <string>

#include "model/arch/registry.h"

namespace lockstep {
namespace {

// The names that the checkpoint gives its architecture; the first known one counts.
Result<std::vector<std::string>> ArchitectureNames(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string name,
                              checkpoint.gguf()->metadata().GetString("general.architecture"));
    return std::vector<std::string>{std::move(name)};
  }
  if (checkpoint.config() != nullptr) return checkpoint.config()->GetStringArray("architectures");
  return InvalidArgument(checkpoint.path() +
                         ": a lone .safetensors file has no configuration; give its folder");
}

}  // namespace

Result<std::unique_ptr<Model>> LoadModel(std::shared_ptr<const Checkpoint> checkpoint,
                                         const LoadOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ArchitectureNames(*checkpoint));
  const bool gguf = checkpoint->gguf() != nullptr;
  std::string wanted;
  std::string known;
  for (const std::string& name : names) {
    wanted += (wanted.empty() ? "" : ", ") + name;
    for (const Architecture& architecture : Architectures()) {
      if (!name.empty() && name == (gguf ? architecture.gguf : architecture.hf)) {
        return architecture.load(std::move(checkpoint), options);
      }
    }
  }
  for (const Architecture& architecture : Architectures()) {
    const std::string name(gguf ? architecture.gguf : architecture.hf);
    if (!name.empty()) known += (known.empty() ? "" : ", ") + name;
  }
  return Unimplemented(checkpoint->path() + ": architecture '" + wanted +
                           "' is not supported; supported are " + known,
                       gguf ? "general.architecture" : "architectures");
}

}  // namespace lockstep
