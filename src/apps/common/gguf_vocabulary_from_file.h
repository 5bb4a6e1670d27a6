// Fills the text layer's GgufVocabulary from the metadata of an opened GGUF file. Here because only
// apps know both layers. Stateless; the result owns its strings.
#pragma once

#include "base/status.h"
#include "text/gguf_vocabulary.h"
#include "weights/gguf_metadata.h"

namespace lockstep {

// Errors: those of the metadata's getters, which name file and key.
Result<GgufVocabulary> GgufVocabularyFromMetadata(const GgufMetadata& metadata);

}  // namespace lockstep
