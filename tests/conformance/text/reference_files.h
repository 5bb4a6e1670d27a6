// Where the tests of this folder find the files they compare with. A missing file fails the test
// that asks for it.
#pragma once

#include <string>

namespace lockstep {

// The folder that tools/fetch_llama_cpp_source.py fills: $LOCKSTEP_LLAMA_CPP_MODELS, or its place
// in the cache.
std::string LlamaCppModels();

// SmolLM2-135M-Instruct as GGUF: $LOCKSTEP_MODEL, or its place in the cache.
std::string SmolLm2Path();

// A file of this folder in the source tree.
std::string GoldenPath(const std::string& name);

// The content of a file. REQUIRES: called from a test's body; adds a failure when there is none.
std::string ReadReference(const std::string& path);

}  // namespace lockstep
