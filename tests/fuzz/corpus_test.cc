// Replays every file of the corpus (seeds, and inputs that once broke something) in the normal
// build.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "targets.h"

namespace lockstep::fuzz {
namespace {

void Replay(const std::string& folder, void (*target)(const uint8_t*, size_t)) {
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(LOCKSTEP_FUZZ_CORPUS + folder)) {
    SCOPED_TRACE(file.path().filename().string());
    std::ifstream stream(file.path(), std::ios::binary);
    // Exactly as large as the file, so that a sanitiser sees a read past its end.
    const std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(stream)), {});
    target(bytes.data(), bytes.size());
    ++count;
  }
  EXPECT_GT(count, 0u);
}

TEST(FuzzCorpus, Gguf) { Replay("gguf", Gguf); }
TEST(FuzzCorpus, Safetensors) { Replay("safetensors", Safetensors); }
TEST(FuzzCorpus, HfConfig) { Replay("hf_config", HfConfig); }
TEST(FuzzCorpus, TokenizerJson) { Replay("tokenizer", TokenizerJson); }

}  // namespace
}  // namespace lockstep::fuzz
