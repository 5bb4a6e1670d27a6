// What the fuzzers run, as plain functions, so that the corpus is replayed in the normal build too.
// Each aborts when a promise of the code under test is broken; refusing the input is always right.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::fuzz {

void Gguf(const uint8_t* data, size_t size);
void Safetensors(const uint8_t* data, size_t size);
void HfConfig(const uint8_t* data, size_t size);
void TokenizerJson(const uint8_t* data, size_t size);

}  // namespace lockstep::fuzz
