// What layers of each kind take in the cache, and which schemes they refuse.
#include "executor/cpu/kv_store.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

kernels::KvScheme Scheme(const char* name) { return KvSchemeByName(name).value(); }

// DeepSeek V3's layers: 512 elements of a latent and 64 of a rotary key.
ModelInfo Latents(int32_t layers) {
  ModelInfo info;
  info.kv_layers.assign(layers, {.kv_heads = 1, .head_dim = 576, .latent_dim = 512});
  info.kv_groups = {{.latent = true}};
  return info;
}

TEST(KvStore, ALatentLayerKeepsOneRowAPosition) {
  const ModelInfo info = Latents(2);
  EXPECT_EQ(KvBlockBytesOfGroup(info, 0, Scheme("bf16")), 2 * 32 * 576 * 2);
  EXPECT_EQ(KvBlockBytesOfGroup(info, 0, Scheme("q8")), 2 * 32 * (576 + 18 * 4));
  EXPECT_EQ(KvBlockBytesOfGroup(info, 0, Scheme("q4-64")), 2 * 32 * (288 + 9 * 4));
  const int32_t blocks[] = {3};
  const auto store = KvStore::Allocate(info, Scheme("bf16"), blocks);
  ASSERT_TRUE(store.ok());
  for (const kernels::KvLayer& layer : store->layers()) {
    EXPECT_EQ(layer.block_stride, 32 * 576 * 2);
    EXPECT_EQ(layer.value_dim(), 512);
  }
  // Keys and values of as many elements take twice the bytes.
  ModelInfo paged;
  paged.kv_layers.assign(2, {.kv_heads = 1, .head_dim = 576});
  EXPECT_EQ(KvBlockBytesOfGroup(paged, 0, Scheme("q8")),
            2 * KvBlockBytesOfGroup(info, 0, Scheme("q8")));
}

TEST(KvStore, ARefusalNamesTheLayerAndWhatDoesNotFit) {
  for (const char* name : {"f32", "f16", "bf16", "q8", "q8-64", "q4", "q4-64"}) {
    EXPECT_TRUE(CheckKvScheme(Latents(2), Scheme(name)).ok()) << name;
  }
  const auto message = [](const KvShape& odd, const char* scheme) {
    ModelInfo info = Latents(3);
    info.kv_layers[2] = odd;
    const Status status = CheckKvScheme(info, Scheme(scheme));
    EXPECT_EQ(status.param(), "kv");
    return status.message();
  };
  // The sum of both is a multiple of the group, and yet one group would hold a part of each.
  EXPECT_EQ(message({.kv_heads = 1, .head_dim = 64, .latent_dim = 48}, "q8"),
            "layer 2 cannot keep its cache in q8: its latents have 48 elements, not a multiple of "
            "the group of 32");
  EXPECT_EQ(message({.kv_heads = 1, .head_dim = 80, .latent_dim = 64}, "q4"),
            "layer 2 cannot keep its cache in q4: its rotary keys have 16 elements, not a multiple "
            "of the group of 32");
  EXPECT_EQ(message({.kv_heads = 2, .head_dim = 96}, "q8-64"),
            "layer 2 cannot keep its cache in q8-64: its heads have 96 elements, not a multiple of "
            "the group of 64");
}

}  // namespace
}  // namespace lockstep
