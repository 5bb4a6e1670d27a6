#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "weights/gguf_builder_for_test.h"
#include "weights/temp_dir_for_test.h"

namespace lockstep {
namespace {

// A safetensors file with the F32 scalars `names`.
std::string Shard(const std::vector<std::string>& names) {
  std::string header;
  for (size_t i = 0; i < names.size(); ++i) {
    header += (i == 0 ? "{" : ",") + ('"' + names[i]) +
              R"(":{"dtype":"F32","shape":[],"data_offsets":[)" + std::to_string(4 * i) + "," +
              std::to_string(4 * i + 4) + "]}";
  }
  header += "}";
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header +
         std::string(4 * names.size(), 'd');
}

class CheckpointTest : public testing::Test {
 protected:
  std::shared_ptr<const Checkpoint> Open(const std::string& path) {
    auto checkpoint = Checkpoint::Open(path);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
    return checkpoint.ok() ? *checkpoint : nullptr;
  }
  void ExpectError(const std::string& path, StatusCode code, const std::string& says) {
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_FALSE(checkpoint.ok()) << says;
    EXPECT_EQ(checkpoint.status().code(), code) << checkpoint.status().ToString();
    EXPECT_NE(checkpoint.status().message().find(says), std::string::npos)
        << checkpoint.status().ToString();
  }
  void WriteSharded(const std::string& weight_map) {
    dir_.Write("m/config.json", R"({"eos_token_id":2})");
    dir_.Write("m/model.safetensors.index.json", R"({"weight_map":)" + weight_map + "}");
    dir_.Write("m/1.safetensors", Shard({"a", "b"}));
    dir_.Write("m/2.safetensors", Shard({"c"}));
  }

  TempDir dir_;
  const std::string good_map_ = R"({"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"})";
};

TEST_F(CheckpointTest, OpensGguf) {
  const auto c = Open(dir_.Write("m.gguf", SmallGguf().bytes()));
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->kind(), CheckpointKind::kGguf);
  EXPECT_NE(c->gguf(), nullptr);
  EXPECT_EQ(c->config(), nullptr);
  EXPECT_EQ(c->Find("first")->dtype, DType::kF32);
  EXPECT_EQ(c->Find("none"), nullptr);
  EXPECT_EQ(c->Get("none").status().param(), "none");
  EXPECT_TRUE(c->HfEosTokenIds()->empty());
  c->Advise(MappedFile::Advice::kWillNeed);
}

TEST_F(CheckpointTest, OpensOneSafetensorsFile) {
  const auto c = Open(dir_.Write("m.safetensors", Shard({"a"})));
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->kind(), CheckpointKind::kSafetensors);
  EXPECT_NE(c->Find("a"), nullptr);
}

TEST_F(CheckpointTest, GoesByContentBeforeTheName) {
  EXPECT_EQ(Open(dir_.Write("blob1", SmallGguf().bytes()))->kind(), CheckpointKind::kGguf);
  EXPECT_EQ(Open(dir_.Write("blob2", Shard({"a"})))->kind(), CheckpointKind::kSafetensors);
  ExpectError(dir_.Write("x.bin", "PK whatever it is"), StatusCode::kInvalidArgument,
              "neither a GGUF nor a safetensors file");
  ExpectError(dir_.Write("x.gguf", "PK whatever it is"), StatusCode::kInvalidArgument,
              "is not a GGUF file");
  ExpectError(dir_.Write("e.gguf", ""), StatusCode::kDataLoss, "is empty");
}

TEST_F(CheckpointTest, OpensFoldersWithOneFile) {
  dir_.Write("m/config.json", R"({"eos_token_id":2,"text_config":{"eos_token_id":[9]}})");
  dir_.Write("m/generation_config.json", R"({"eos_token_id":[5,2]})");
  dir_.Write("m/model.safetensors", Shard({"a"}));
  const auto c = Open(dir_.Path("m"));
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->kind(), CheckpointKind::kHfFolder);
  EXPECT_NE(c->config(), nullptr);
  EXPECT_NE(c->generation_config(), nullptr);
  EXPECT_EQ(*c->HfEosTokenIds(), (std::vector<int32_t>{2, 5, 9}));
}

TEST_F(CheckpointTest, OpensShardedFolders) {
  WriteSharded(good_map_);
  const auto c = Open(dir_.Path("m"));
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->tensors().size(), 3u);
  EXPECT_EQ(c->safetensors().size(), 2u);
  EXPECT_NE(c->Find("c"), nullptr);
  EXPECT_EQ(c->generation_config(), nullptr);
}

TEST_F(CheckpointTest, NamesWhatAFolderLacks) {
  dir_.Write("m/readme", "x");
  ExpectError(dir_.Path("m"), StatusCode::kNotFound, "m/config.json: No such file");
  dir_.Write("m/config.json", "{}");
  ExpectError(dir_.Path("m"), StatusCode::kNotFound, "holds neither model.safetensors nor");
  dir_.Write("m/config.json", "{");
  ExpectError(dir_.Path("m"), StatusCode::kDataLoss, "m/config.json: is not JSON");
  ExpectError(dir_.Path("none"), StatusCode::kNotFound, "none: No such file");
}

TEST_F(CheckpointTest, NamesWhatIndexAndShardsDisagreeOn) {
  WriteSharded(good_map_);
  std::filesystem::remove(dir_.Path("m/2.safetensors"));
  ExpectError(dir_.Path("m"), StatusCode::kNotFound, "m/2.safetensors: No such file");
  WriteSharded(
      R"({"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors","d":"2.safetensors"})");
  ExpectError(dir_.Path("m"), StatusCode::kDataLoss,
              "places tensor 'd' in 2.safetensors, which does not hold it");
  WriteSharded(R"({"a":"1.safetensors","c":"2.safetensors"})");
  ExpectError(dir_.Path("m"), StatusCode::kDataLoss,
              "does not list tensor 'b', which 1.safetensors holds");
  WriteSharded(R"({"a":"1.safetensors","b":"2.safetensors","c":"2.safetensors"})");
  ExpectError(dir_.Path("m"), StatusCode::kDataLoss,
              "places tensor 'b' in 2.safetensors, but 1.safetensors holds one too");
}

TEST_F(CheckpointTest, RefusesMalformedIndexes) {
  for (const char* map :
       {"[]", "null", "{\"a\":1}", "{\"a\":\"../1.safetensors\"}", "{\"a\":\"/etc/passwd\"}",
        "{\"a\":\"\"}", "{\"a\":\"..\"}", "{\"a\":\"1.safetensors\\u0000x\"}", "{}",
        "{\"a\":\"1.safetensors\",\"a\":\"2.safetensors\"}"}) {
    WriteSharded(map);
    ExpectError(dir_.Path("m"), StatusCode::kDataLoss, "model.safetensors.index.json: ");
  }
  WriteSharded("{");
  ExpectError(dir_.Path("m"), StatusCode::kDataLoss, "index.json: is not JSON");
}

TEST_F(CheckpointTest, OpensAnyPathTheSystemDoes) {
  const std::string file = dir_.Write("モデル dir/é m.gguf", SmallGguf().bytes());
  dir_.Write("モデル dir/hf 語/config.json", "{}");
  dir_.Write("モデル dir/hf 語/model.safetensors", Shard({"a"}));
  const std::string folder = dir_.Path("モデル dir/hf 語");
  std::filesystem::create_symlink(file, dir_.Path("link.gguf"));
  std::filesystem::create_directory_symlink(folder, dir_.Path("link"));
  for (const std::string& path : {file, dir_.Path("link.gguf"), folder, folder + "/", folder + "//",
                                  dir_.Path("link"), dir_.Path("link/")}) {
    EXPECT_NE(Open(path), nullptr) << path;
  }
  ExpectError(folder + std::string(1, '\0') + "x", StatusCode::kInvalidArgument, "zero byte");
}

}  // namespace
}  // namespace lockstep
