// The readers against what the reference packages `gguf` and `safetensors` wrote and read
// (tests/conformance/weights/make_fixtures.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "weights/checkpoint.h"
#include "weights/gguf_json.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const std::string kFixtures = LOCKSTEP_WEIGHTS_FIXTURES;

Json Expected() {
  std::ifstream file(kFixtures + "/expected.json");
  return Json::parse(file);
}

std::shared_ptr<const Checkpoint> Open(const std::string& name) {
  auto checkpoint = Checkpoint::Open(kFixtures + "/" + name);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
  return checkpoint.ok() ? *checkpoint : nullptr;
}

std::string Hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += kDigits[std::to_integer<int>(b) >> 4];
    out += kDigits[std::to_integer<int>(b) & 15];
  }
  return out;
}

void ExpectTensors(std::span<const TensorView> tensors, const Json& expected) {
  ASSERT_EQ(tensors.size(), expected.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    SCOPED_TRACE(tensors[i].name);
    EXPECT_EQ(tensors[i].name, expected[i]["name"]);
    EXPECT_EQ(DTypeName(tensors[i].dtype), expected[i]["dtype"].get<std::string>());
    EXPECT_EQ(Json(tensors[i].shape), expected[i]["shape"]);
    EXPECT_EQ(Hex(tensors[i].data), expected[i]["hex"]);
  }
}

// A string of code points below 256, as the bytes they stand for.
std::string FromLatin1(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    out += c < 0x80
               ? text[i]
               : static_cast<char>((c & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 63));
  }
  return out;
}

Json FromLatin1(const Json& value) {
  if (value.is_string()) return FromLatin1(value.get<std::string>());
  if (!value.is_array()) return value;
  Json out = Json::array();
  for (const Json& item : value) out.push_back(FromLatin1(item));
  return out;
}

// The names that the reference gives to value types.
std::string ReferenceType(const GgufEntry& entry) {
  static const std::vector<std::string> kNames = {"UINT8",  "INT8",    "UINT16", "INT16",  "UINT32",
                                                  "INT32",  "FLOAT32", "BOOL",   "STRING", "ARRAY",
                                                  "UINT64", "INT64",   "FLOAT64"};
  const std::string name = kNames[static_cast<size_t>(entry.type)];
  if (entry.type != GgufType::kArray) return name;
  return name + " " + kNames[static_cast<size_t>(entry.element_type)];
}

void ExpectMetadata(const GgufMetadata& metadata, const Json& expected) {
  InspectOptions everything;
  everything.max_array = everything.max_string = std::string::npos;
  ASSERT_EQ(metadata.entries().size(), expected.size());
  for (const auto& item : expected.items()) {
    SCOPED_TRACE(item.key());
    const GgufEntry* entry = metadata.Find(item.key());
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(ReferenceType(*entry), item.value()["type"]);
    const Json want = FromLatin1(item.value()["value"]);
    const Json got = GgufValueJson(*entry, everything);
    if (entry->type == GgufType::kU64 || entry->type == GgufType::kI64) {
      EXPECT_EQ(got.dump(), want.get<std::string>());
    } else if (entry->type == GgufType::kF32) {
      EXPECT_EQ(*metadata.GetF32(item.key()), want.get<float>());
    } else {
      EXPECT_EQ(got, want);
    }
  }
}

TEST(WeightsConformance, GgufFiles) {
  const Json expected = Expected();
  for (const std::string name : {"types.gguf", "aligned.gguf"}) {
    SCOPED_TRACE(name);
    const auto checkpoint = Open(name);
    ASSERT_NE(checkpoint, nullptr);
    ExpectTensors(checkpoint->tensors(), expected[name]["tensors"]);
    ExpectMetadata(checkpoint->gguf()->metadata(), expected[name]["metadata"]);
  }
  EXPECT_EQ(Open("aligned.gguf")->gguf()->alignment(), 256u);
}

TEST(WeightsConformance, SplitGgufFile) {
  const Json expected = Expected();
  Json tensors = Json::array();
  for (const std::string part : {"1", "2", "3"}) {
    for (const Json& t : expected["split-0000" + part + "-of-00003.gguf"]["tensors"]) {
      tensors.push_back(t);
    }
  }
  const auto checkpoint = Open("split-00001-of-00003.gguf");
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->tensors().size(), 5u);
  ExpectTensors(checkpoint->tensors(), tensors);
  EXPECT_EQ(*checkpoint->gguf()->metadata().GetU32("t.u32"), 7u);
}

TEST(WeightsConformance, SafetensorsFiles) {
  const Json expected = Expected();
  const auto checkpoint = Open("types.safetensors");
  ASSERT_NE(checkpoint, nullptr);
  std::vector<TensorView> tensors(checkpoint->tensors().begin(), checkpoint->tensors().end());
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  ExpectTensors(tensors, expected["types.safetensors"]["tensors"]);
}

TEST(WeightsConformance, HfFolder) {
  const Json expected = Expected();
  const auto checkpoint = Open("hf folder/");
  ASSERT_NE(checkpoint, nullptr);
  size_t count = 0;
  for (const std::string shard : {"1", "2"}) {
    for (const Json& t :
         expected["hf folder/model-0000" + shard + "-of-00002.safetensors"]["tensors"]) {
      const TensorView* tensor = checkpoint->Find(t["name"].get<std::string>());
      ASSERT_NE(tensor, nullptr);
      EXPECT_EQ(Hex(tensor->data), t["hex"]);
      ++count;
    }
  }
  EXPECT_EQ(checkpoint->tensors().size(), count);
  EXPECT_EQ(*checkpoint->HfEosTokenIds(), (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(*checkpoint->config()->GetF32("rms_norm_eps"), 1e-5f);
  EXPECT_EQ(*checkpoint->config()->GetF32("rope_theta"), 10000.0f);
  EXPECT_EQ(checkpoint->config()->GetF64Array("time_step_limit")->size(), 2u);
}

}  // namespace
}  // namespace lockstep
