// A cache is used whole or not at all: whatever was done to its file, loading gives the same
// matrices.
#include "model/load/packed_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model/weight_loader.h"
#include "weights/temp_dir_for_test.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string Tiny(const std::string& name) { return LOCKSTEP_CHECKPOINTS "/" + name; }

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PackedCacheTest : public testing::Test {
 protected:
  struct Loaded {
    std::vector<std::string> matrices;  // descriptions and bytes
    uint64_t hash = 0;
    bool mapped = false;  // none was packed

    bool operator==(const Loaded& other) const {
      return matrices == other.matrices && hash == other.hash;
    }
  };

  Loaded Load(const std::string& checkpoint, const std::string& cache,
              ComputeClass compute = ComputeClass::kAuto) {
    auto opened = Checkpoint::Open(checkpoint);
    EXPECT_TRUE(opened.ok());
    auto loader = WeightLoader::Create(*opened, {compute, &pool_, cache});
    EXPECT_TRUE(loader.ok()) << loader.status().ToString();
    Loaded loaded;
    for (const TensorView& tensor : (*opened)->tensors()) {
      if (tensor.shape.size() != 2) {
        EXPECT_TRUE(loader->LoadVector(tensor.name, static_cast<int32_t>(tensor.shape[0])).ok());
        continue;
      }
      std::vector<int32_t> rows;
      const auto n = static_cast<int32_t>(tensor.shape[0]);
      if (tensor.name.find("attn_q") != std::string::npos) {
        for (int32_t row = n; row-- > 0;) rows.push_back(row);
      }
      auto linear = loader->LoadLinear(tensor.name, n, static_cast<int32_t>(tensor.shape[1]),
                                       {"", false, rows});
      EXPECT_TRUE(linear.ok()) << linear.status().ToString();
      const kernels::PackedMatrix& m = linear->matrix;
      const std::string bytes(reinterpret_cast<const char*>(m.data), linear->bytes());
      const int32_t parts[] = {
          static_cast<int32_t>(m.code), m.n, m.k, m.group, m.zero, m.has_min, m.f32_scales};
      loaded.matrices.push_back(std::string(reinterpret_cast<const char*>(parts), sizeof(parts)) +
                                bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(m.data) % 64, 0u);
    }
    EXPECT_TRUE(loader->Finish().ok());
    loaded.hash = loader->hash();
    loaded.mapped = loader->mapped();
    return loaded;
  }

  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(cache_)) files.push_back(entry.path());
    return files;
  }
  fs::path OnlyFile() const {
    const auto files = Files();
    EXPECT_EQ(files.size(), 1u);
    return files.front();
  }

  ThreadPool pool_{2};
  TempDir folder_;
  std::string cache_ = folder_.Path("cache/of packed weights");
  std::string model_ = Tiny("tiny-llama-q4_0-q6_k.gguf");
};

TEST_F(PackedCacheTest, TheSecondStartMapsTheSameMatrices) {
  const Loaded without = Load(model_, "");
  ASSERT_FALSE(without.matrices.empty());
  const Loaded first = Load(model_, cache_);
  EXPECT_FALSE(first.mapped);
  EXPECT_TRUE(first == without);
  const Loaded second = Load(model_, cache_);
  EXPECT_TRUE(second.mapped);
  EXPECT_TRUE(second == without);
  OnlyFile();
}

TEST_F(PackedCacheTest, ClassesAndCheckpointsHaveFilesOfTheirOwn) {
  const Loaded f32 = Load(model_, cache_, ComputeClass::kF32);
  EXPECT_FALSE(Load(model_, cache_).mapped);
  EXPECT_FALSE(Load(Tiny("tiny-llama-q8_0.gguf"), cache_).mapped);
  EXPECT_EQ(Files().size(), 3u);
  const Loaded again = Load(model_, cache_, ComputeClass::kF32);
  EXPECT_TRUE(again.mapped);
  EXPECT_TRUE(again == f32);
}

TEST_F(PackedCacheTest, AnotherFileOfTheSameNameSizeAndTimeIsAnotherCheckpoint) {
  const std::string copy = folder_.Path("model.gguf");
  fs::copy_file(model_, copy);
  const auto time = fs::last_write_time(copy);
  Load(copy, cache_);
  std::string bytes = Read(copy);
  for (size_t i = bytes.size() / 2; i < bytes.size(); ++i) bytes[i] ^= 1;
  folder_.Write("model.gguf", bytes);
  fs::last_write_time(copy, time);
  const Loaded changed = Load(copy, cache_);
  EXPECT_FALSE(changed.mapped);
  EXPECT_TRUE(changed == Load(copy, ""));
}

TEST_F(PackedCacheTest, EveryFlippedByteIsAMiss) {
  const Loaded right = Load(model_, cache_);
  const fs::path file = OnlyFile();
  const std::string whole = Read(file);
  std::vector<size_t> places;
  for (size_t i = 0; i < 64; ++i) places.push_back(i);                      // the header
  for (size_t i = 4096; i < whole.size(); i += 17389) places.push_back(i);  // matrices
  for (size_t i = 1; i < 400; i += 13) places.push_back(whole.size() - i);  // the table
  int misses = 0;
  for (const size_t place : places) {
    // Gaps between matrices mean nothing.
    std::string broken = whole;
    broken[place] ^= 0x10;
    std::ofstream(file, std::ios::binary) << broken;
    const Loaded loaded = Load(model_, cache_);
    ASSERT_TRUE(loaded == right) << place;
    misses += loaded.mapped ? 0 : 1;
    // After a miss there is a good file again.
    ASSERT_EQ(Read(file) == whole, !loaded.mapped) << place;
  }
  EXPECT_GE(misses, static_cast<int>(places.size()) - 3);
}

TEST_F(PackedCacheTest, TornAndForeignFilesAreMisses) {
  const Loaded right = Load(model_, cache_);
  const fs::path file = OnlyFile();
  const std::string whole = Read(file);
  std::vector<std::string> contents = {"", "x", "not at all a file of packed weights",
                                       whole + "more", std::string(whole.size(), '\0')};
  for (const size_t size :
       {size_t{63}, size_t{64}, size_t{4096}, whole.size() / 2, whole.size() - 1}) {
    contents.push_back(whole.substr(0, size));
  }
  Load(Tiny("tiny-llama-q8_0.gguf"), cache_);
  for (const fs::path& other : Files()) {
    if (other != file) contents.push_back(Read(other));
  }
  for (const std::string& content : contents) {
    std::ofstream(file, std::ios::binary) << content;
    const Loaded loaded = Load(model_, cache_);
    EXPECT_FALSE(loaded.mapped) << content.size();
    EXPECT_TRUE(loaded == right);
  }
}

TEST_F(PackedCacheTest, AFolderThatCannotBeIsNoError) {
  const std::string file = folder_.Write("file", "in the way");
  EXPECT_TRUE(Load(model_, file + "/cache") == Load(model_, ""));
}

}  // namespace
}  // namespace lockstep
