#include "reference_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace lockstep {
namespace {

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string CacheFolder() {
  const std::string cache = FromEnvironment("LOCKSTEP_CACHE");
  return cache.empty() ? FromEnvironment("HOME") + "/.cache/lockstep" : cache;
}

}  // namespace

std::string LlamaCppModels() {
  const std::string folder = FromEnvironment("LOCKSTEP_LLAMA_CPP_MODELS");
  return folder.empty() ? CacheFolder() + "/llama-cpp-python-0.3.36/models" : folder;
}

std::string SmolLm2Path() {
  const std::string path = FromEnvironment("LOCKSTEP_MODEL");
  return path.empty() ? CacheFolder() + "/models/SmolLM2-135M-Instruct.Q4_1.gguf" : path;
}

std::string GoldenPath(const std::string& name) {
  return std::string(LOCKSTEP_TEXT_GOLDENS) + "/" + name;
}

std::string ReadReference(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    ADD_FAILURE() << path
                  << " is missing; tools/fetch_llama_cpp_source.py and tools/fetch_model.sh "
                  << "fetch what the project does not carry";
    return {};
  }
  return std::string((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
}

}  // namespace lockstep
