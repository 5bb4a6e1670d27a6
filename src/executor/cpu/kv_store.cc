#include "executor/cpu/kv_store.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

using kernels::KvCodec;
using kernels::KvScheme;

struct NamedScheme {
  const char* name;
  KvScheme scheme;
};
constexpr NamedScheme kSchemes[] = {
    {"f32", {KvCodec::kF32, 0}},   {"f16", {KvCodec::kF16, 0}}, {"bf16", {KvCodec::kBF16, 0}},
    {"q8", {KvCodec::kQ8, 32}},    {"q4", {KvCodec::kQ4, 32}},  {"q8-64", {KvCodec::kQ8, 64}},
    {"q4-64", {KvCodec::kQ4, 64}},
};

int64_t BlockBytes(const KvShape& shape, const KvScheme& scheme) {
  return kernels::KvBlockBytes(shape.kv_heads, shape.head_dim, scheme, shape.latent_dim > 0);
}

}  // namespace

std::optional<KvScheme> KvSchemeByName(std::string_view name) {
  for (const NamedScheme& named : kSchemes) {
    if (named.name == name) return named.scheme;
  }
  return std::nullopt;
}

std::vector<std::string> KvSchemeNames() {
  std::vector<std::string> names;
  for (const NamedScheme& named : kSchemes) names.emplace_back(named.name);
  return names;
}

std::string KvSchemeName(const KvScheme& scheme) {
  for (const NamedScheme& named : kSchemes) {
    if (named.scheme == scheme) return named.name;
  }
  return fmt::format("codec {}, group {}", static_cast<int>(scheme.codec), scheme.group);
}

Status CheckKvScheme(const ModelInfo& info, const KvScheme& scheme) {
  if (!scheme.affine()) return OkStatus();
  for (size_t layer = 0; layer < info.kv_layers.size(); ++layer) {
    const KvShape& shape = info.kv_layers[layer];
    const auto refuse = [&](const char* what, int32_t elements) {
      return InvalidArgument(
          fmt::format("layer {} cannot keep its cache in {}: its {} have {} elements, not a "
                      "multiple of the group of {}",
                      layer, KvSchemeName(scheme), what, elements, scheme.group),
          "kv");
    };
    // A group that held the end of a latent and the beginning of a rotary key would fit neither.
    if (shape.latent_dim % scheme.group != 0) return refuse("latents", shape.latent_dim);
    const int32_t keys = shape.head_dim - shape.latent_dim;
    if (keys % scheme.group != 0) {
      return refuse(shape.latent_dim > 0 ? "rotary keys" : "heads", keys);
    }
  }
  return OkStatus();
}

int64_t KvBlockBytesOfGroup(const ModelInfo& info, int32_t group, const KvScheme& scheme) {
  int64_t bytes = 0;
  for (const KvShape& shape : info.kv_layers) {
    if (shape.group != group) continue;
    bytes += BlockBytes(shape, scheme);
  }
  return bytes;
}

Result<KvStore> KvStore::Allocate(const ModelInfo& info, const KvScheme& scheme,
                                  std::span<const int32_t> blocks) {
  KvStore store;
  for (const KvShape& shape : info.kv_layers) {
    const int64_t block = BlockBytes(shape, scheme);
    LOCKSTEP_ASSIGN_OR_RETURN(
        Buffer slab, Buffer::Allocate(size_t(block) * blocks[shape.group], "the KV cache"));
    store.layers_.push_back(
        {slab.data(), block, shape.kv_heads, shape.head_dim, scheme, shape.latent_dim});
    store.slabs_.push_back(std::move(slab));
  }
  return store;
}

}  // namespace lockstep
