#include "base/check.h"
#include "targets.h"
#include "weights/safetensors.h"
#include "weights/shard_index.h"
#include "weights_checks.h"

namespace lockstep::fuzz {

void Safetensors(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto contents = ParseSafetensors(bytes, "fuzz.safetensors");
  if (contents.ok()) {
    CheckTensors(contents->tensors, bytes);
  } else {
    LOCKSTEP_CHECK(contents.status().message().starts_with("fuzz.safetensors: "));
  }
  // The index of a folder's shards, on the same bytes: JSON starts with '{', a file with a length.
  const auto index = ParseShardIndex({reinterpret_cast<const char*>(data), size}, "index.json");
  if (!index.ok()) return;
  LOCKSTEP_CHECK(!index->shards.empty());
  for (const std::string& shard : index->shards) {
    LOCKSTEP_CHECK(shard.find('/') == std::string::npos);
  }
}

}  // namespace lockstep::fuzz
