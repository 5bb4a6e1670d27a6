// The document behind InspectJson and InspectText. Pure; thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "weights/inspect.h"

namespace lockstep {

// {path, kind, gguf | files, metadata | config, tensors, totals}. Strings hold the file's bytes,
// UTF-8 or not.
nlohmann::ordered_json InspectDocument(const Checkpoint& checkpoint, const InspectOptions& options);

}  // namespace lockstep
