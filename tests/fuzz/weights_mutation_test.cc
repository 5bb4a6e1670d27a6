// Every small way to spoil a weights file, tried exhaustively: cut at each byte, each bit of the
// header flipped, each number set to extremes. Whatever comes out, nothing may crash, read outside
// the file, or allocate more than the file's size justifies.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "targets.h"
#include "weights/gguf_builder_for_test.h"
#include "weights/gguf_parse.h"
#include "weights/safetensors.h"

namespace {

std::atomic<size_t> largest_allocation{0};

void* AllocateOrNull(size_t size) noexcept {
  size_t seen = largest_allocation.load();
  while (size > seen && !largest_allocation.compare_exchange_weak(seen, size)) {
  }
  return std::malloc(size == 0 ? 1 : size);
}

void* Allocate(size_t size) {
  void* memory = AllocateOrNull(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return AllocateOrNull(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return AllocateOrNull(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace lockstep::fuzz {
namespace {

using Target = void (*)(const uint8_t*, size_t);

// Runs `target` over `bytes` in a block of exactly their size, and holds its largest allocation
// against the file: some twenty bytes of bookkeeping a byte, and room for messages.
void Attempt(Target target, const std::string& bytes) {
  std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  largest_allocation = 0;
  target(exact.data(), exact.size());
  ASSERT_LE(largest_allocation.load(), 8192 + 24 * bytes.size());
}

std::string Fixture(const std::string& name) {
  std::ifstream file(LOCKSTEP_WEIGHTS_FIXTURES + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string SmallSafetensors() {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(11, 'd');
}

bool GgufOpens(const std::string& bytes) {
  return ParseGguf(std::as_bytes(std::span(bytes)), "m").ok();
}
bool SafetensorsOpens(const std::string& bytes) {
  return ParseSafetensors(std::as_bytes(std::span(bytes)), "m").ok();
}

TEST(WeightsMutation, GgufCutAnywhereIsRefused) {
  const std::string whole = SmallGguf().bytes();
  ASSERT_TRUE(GgufOpens(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(GgufOpens(whole.substr(0, size))) << size;
    Attempt(Gguf, whole.substr(0, size));
  }
}

TEST(WeightsMutation, SafetensorsCutAnywhereIsRefused) {
  const std::string whole = SmallSafetensors();
  ASSERT_TRUE(SafetensorsOpens(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(SafetensorsOpens(whole.substr(0, size))) << size;
    Attempt(Safetensors, whole.substr(0, size));
  }
}

void FlipEveryBit(Target target, std::string bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
      Attempt(target, bytes);
      bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
    }
  }
}

TEST(WeightsMutation, EveryBitFlipped) {
  FlipEveryBit(Gguf, SmallGguf().bytes());
  FlipEveryBit(Gguf, Fixture("aligned.gguf"));
  FlipEveryBit(Safetensors, SmallSafetensors());
  FlipEveryBit(HfConfig, Fixture("hf folder/config.json"));
  FlipEveryBit(Safetensors, Fixture("hf folder/model.safetensors.index.json"));
}

TEST(WeightsMutation, EveryNumberOfGgufAtExtremes) {
  const GgufBuilder builder = SmallGguf();
  const uint64_t extremes[] = {
      0,          1,          2,          3,          5,          0x7f,       0x80,
      0xff,       0x100,      0x7fff,     0x8000,     0xffff,     1u << 30,   0x7fffffff,
      1u << 31,   0xffffffff, 1ull << 32, 1ull << 42, 1ull << 60, 1ull << 61, 1ull << 62,
      ~0ull >> 1, 1ull << 63, ~0ull,      ~0ull - 1,  ~0ull - 7,  ~0ull - 31};
  for (const auto& field : builder.fields()) {
    for (const uint64_t extreme : extremes) {
      SCOPED_TRACE(field.what + " = " + std::to_string(extreme));
      std::string bytes = builder.bytes();
      std::memcpy(bytes.data() + field.offset, &extreme, field.width);
      Attempt(Gguf, bytes);
    }
  }
}

TEST(WeightsMutation, EveryNumberOfSafetensorsAtExtremes) {
  const std::string whole = SmallSafetensors();
  for (size_t i = 8; i < whole.size(); ++i) {
    if (whole[i] < '0' || whole[i] > '9' || whole[i - 1] == 'F' || whole[i - 1] == 'U') continue;
    for (const char* extreme : {"-1", "0", "1e2", "4294967296", "9223372036854775807",
                                "18446744073709551615", "18446744073709551616", "null", "[]"}) {
      std::string bytes = whole;
      bytes.replace(i, 1, extreme);
      const uint64_t length = whole.size() - 8 - 11 + std::strlen(extreme) - 1;
      std::memcpy(bytes.data(), &length, sizeof(length));
      SCOPED_TRACE(bytes.substr(8));
      Attempt(Safetensors, bytes);
    }
  }
  for (uint64_t length = 1; length != 0; length <<= 1) {
    for (const uint64_t near : {length - 1, length, length + 1, ~length}) {
      std::string bytes = whole;
      std::memcpy(bytes.data(), &near, sizeof(near));
      Attempt(Safetensors, bytes);
    }
  }
}

}  // namespace
}  // namespace lockstep::fuzz
