// Which tensors a matrix is made of, and what is refused. Values are the business of quant_test.cc
// and of the checkpoints in tests/conformance.
#include "model/load/matrix_storage.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weights/temp_dir_for_test.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
};

// A folder with this config and these tensors, all zero.
class MatrixStorageTest : public testing::Test {
 protected:
  std::shared_ptr<const Checkpoint> Open(const Json& config, const std::vector<Tensor>& tensors) {
    Json header;
    uint64_t end = 0;
    for (const Tensor& tensor : tensors) {
      const auto dtype = DTypeFromSafetensors(tensor.dtype);
      const uint64_t begin = end;
      end += *TensorBytes(*dtype, tensor.shape);
      header[tensor.name] = {
          {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    }
    const std::string text = header.dump();
    const uint64_t size = text.size();
    folder_.Write("m/model.safetensors", std::string(reinterpret_cast<const char*>(&size), 8) +
                                             text + std::string(end, '\0'));
    folder_.Write("m/config.json", config.dump());
    auto checkpoint = Checkpoint::Open(folder_.Path("m"));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
    return *checkpoint;
  }

  // The format of matrix a [8, 128], or why there is none.
  Result<std::string> FormatOfA(const Json& config, const std::vector<Tensor>& tensors) {
    const auto checkpoint = Open(config, tensors);
    LOCKSTEP_ASSIGN_OR_RETURN(const auto storage, StorageOf(*checkpoint));
    LOCKSTEP_ASSIGN_OR_RETURN(const StoredMatrix found,
                              storage->Find(*checkpoint, "m.a.weight", 8, 128, 0));
    EXPECT_EQ(found.source.n, 8);
    EXPECT_EQ(found.source.k, 128);
    for (size_t p = 0; p < found.tensors.size(); ++p) {
      EXPECT_EQ(found.source.first.plane[p], found.tensors[p]->data.data());
    }
    return std::string(found.source.format->name);
  }

  void ExpectRefused(StatusCode code, const std::string& param, const Json& config,
                     const std::vector<Tensor>& tensors) {
    const auto format = FormatOfA(config, tensors);
    ASSERT_FALSE(format.ok()) << config.dump() << ": " << *format;
    EXPECT_EQ(format.status().code(), code) << format.status().ToString();
    EXPECT_EQ(format.status().param(), param) << format.status().ToString();
    EXPECT_NE(format.status().message().find(folder_.Path("m")), std::string::npos);
  }

  TempDir folder_;
};

std::vector<Tensor> Quantized(int64_t bits, int64_t group, const std::string& constants = "BF16") {
  return {{"m.a.weight", "U32", {8, 128 * bits / 32}},
          {"m.a.scales", constants, {8, 128 / group}},
          {"m.a.biases", constants, {8, 128 / group}}};
}

Json Mlx(Json entry = Json::object()) {
  Json quantization = {{"group_size", 64}, {"bits", 4}, {"mode", "affine"}};
  quantization.update(entry);
  return {{"quantization", quantization}, {"quantization_config", quantization}};
}

TEST_F(MatrixStorageTest, PlainMatricesAreOneTensor) {
  const std::vector<Tensor> tensors = {{"m.a.weight", "BF16", {8, 128}}};
  EXPECT_EQ(*FormatOfA(Json::object(), tensors), "BF16");
  EXPECT_EQ(*FormatOfA(Mlx(), tensors), "BF16");
  EXPECT_EQ(*FormatOfA(Mlx({{"m.a", false}}), tensors), "BF16");
  ExpectRefused(StatusCode::kDataLoss, "m.a.weight", Json::object(),
                {{"m.a.weight", "BF16", {8, 64}}});
  ExpectRefused(StatusCode::kUnimplemented, "m.a.weight", Json::object(),
                {{"m.a.weight", "U32", {8, 128}}});
  ExpectRefused(StatusCode::kNotFound, "m.a.weight", Json::object(),
                {{"m.b.weight", "U32", {8, 128}}});
}

TEST_F(MatrixStorageTest, ShapesSayBitsAndGroup) {
  for (const int64_t bits : {2, 3, 4, 5, 6, 8}) {
    for (const int64_t group : {32, 64, 128}) {
      const auto format = FormatOfA(Mlx(), Quantized(bits, group, "F16"));
      ASSERT_TRUE(format.ok()) << format.status().ToString();
      EXPECT_EQ(*format, "MLX_" + std::to_string(bits) + "_G" + std::to_string(group) + "_F16");
    }
  }
}

TEST_F(MatrixStorageTest, ModulesSpeakForThemselves) {
  EXPECT_EQ(*FormatOfA(Mlx({{"m.a", {{"bits", 6}, {"group_size", 32}}}}), Quantized(6, 32)),
            "MLX_6_G32_BF16");
  EXPECT_EQ(*FormatOfA(Mlx({{"m.a", true}}), Quantized(4, 64)), "MLX_4_G64_BF16");
  EXPECT_EQ(*FormatOfA(Mlx({{"m.a", {{"bits", 4}}}}), Quantized(4, 64)), "MLX_4_G64_BF16");
  ExpectRefused(StatusCode::kDataLoss, "m.a.weight",
                Mlx({{"m.a", {{"bits", 6}, {"group_size", 32}}}}), Quantized(4, 32));
  ExpectRefused(StatusCode::kDataLoss, "m.a.scales", Mlx({{"m.a", false}}), Quantized(4, 64));
  ExpectRefused(StatusCode::kDataLoss, "m.a.scales", Mlx({{"m.a", true}}),
                {{"m.a.weight", "BF16", {8, 128}}});
}

TEST_F(MatrixStorageTest, TheSecondKeyAloneIsRead) {
  Json config = Mlx();
  config.erase("quantization");
  EXPECT_EQ(*FormatOfA(config, Quantized(4, 64)), "MLX_4_G64_BF16");
}

TEST_F(MatrixStorageTest, UnknownWaysAreRefusedByKey) {
  ExpectRefused(StatusCode::kUnimplemented, "quantization.mode", Mlx({{"mode", "mxfp4"}}),
                Quantized(4, 32));
  ExpectRefused(StatusCode::kUnimplemented, "quantization.m.b.mode",
                Mlx({{"m.b", {{"mode", "nvfp4"}}}}), Quantized(4, 64));
  ExpectRefused(StatusCode::kUnimplemented, "quantization.bits", Mlx({{"bits", 7}}),
                Quantized(4, 64));
  ExpectRefused(StatusCode::kUnimplemented, "quantization.m.a.group_size",
                Mlx({{"m.a", {{"group_size", 16}}}}), Quantized(4, 64));
  ExpectRefused(StatusCode::kUnimplemented, "quantization.m.a.global_scale",
                Mlx({{"m.a", {{"global_scale", true}}}}), Quantized(4, 64));
  ExpectRefused(StatusCode::kDataLoss, "quantization.outliers", Mlx({{"outliers", 3}}),
                Quantized(4, 64));
  ExpectRefused(StatusCode::kDataLoss, "quantization.bits", Mlx({{"bits", "4"}}), Quantized(4, 64));
  ExpectRefused(StatusCode::kUnimplemented, "quantization_config.quant_method",
                {{"quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}}},
                {{"m.a.weight", "BF16", {8, 128}}});
}

TEST_F(MatrixStorageTest, PartsThatDoNotFitAreRefusedByTensor) {
  auto tensors = Quantized(4, 64);
  tensors[0].dtype = "I32";
  ExpectRefused(StatusCode::kDataLoss, "m.a.weight", Mlx(), tensors);
  tensors = Quantized(4, 64);
  tensors[0].shape = {7, 16};
  ExpectRefused(StatusCode::kDataLoss, "m.a.weight", Mlx(), tensors);
  tensors = Quantized(4, 64);
  tensors[1].shape = {8, 3};
  ExpectRefused(StatusCode::kDataLoss, "m.a.weight", Mlx(), tensors);
  tensors = Quantized(4, 64);
  tensors[1].shape = {16};
  ExpectRefused(StatusCode::kDataLoss, "m.a.scales", Mlx(), tensors);
  tensors = Quantized(4, 64);
  tensors[1].dtype = "U8";
  ExpectRefused(StatusCode::kDataLoss, "m.a.scales", Mlx(), tensors);
  tensors = Quantized(4, 64);
  tensors[2].dtype = "F16";
  ExpectRefused(StatusCode::kDataLoss, "m.a.biases", Mlx(), tensors);
  tensors = Quantized(4, 64);
  tensors.pop_back();
  ExpectRefused(StatusCode::kNotFound, "m.a.biases", Mlx(), tensors);
}

}  // namespace
}  // namespace lockstep
