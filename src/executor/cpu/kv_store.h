// KvStore: the bytes of the paged cache on this machine: for each layer one slab of blocks, laid
// out as kernels/attention.h says. Which block belongs to whom is the KV manager's matter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention.h"
#include "model/model.h"
#include "platform/buffer.h"

namespace lockstep {

// The schemes by name: f32, f16, bf16, q8 and q4 (groups of 32), q8-64 and q4-64.
std::optional<kernels::KvScheme> KvSchemeByName(std::string_view name);
std::vector<std::string> KvSchemeNames();
std::string KvSchemeName(const kernels::KvScheme& scheme);

// An error, which names the layer, when one cannot be kept in `scheme`.
Status CheckKvScheme(const ModelInfo& info, const kernels::KvScheme& scheme);

// Bytes of one block over all layers of a group.
int64_t KvBlockBytesOfGroup(const ModelInfo& info, int32_t group, const kernels::KvScheme& scheme);

class KvStore {
 public:
  // blocks[g] blocks for each layer of group g. REQUIRES: CheckKvScheme.
  static Result<KvStore> Allocate(const ModelInfo& info, const kernels::KvScheme& scheme,
                                  std::span<const int32_t> blocks);
  std::span<const kernels::KvLayer> layers() const { return layers_; }

 private:
  std::vector<Buffer> slabs_;
  std::vector<kernels::KvLayer> layers_;
};

}  // namespace lockstep
