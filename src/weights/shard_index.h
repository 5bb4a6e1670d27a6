// ShardIndex: which shard of a Hugging Face folder holds which tensor
// (model.safetensors.index.json). Plain values, thread-compatible.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lockstep {

struct ShardIndex {
  std::map<std::string, std::string, std::less<>> shard_of;  // tensor name -> file name
  std::vector<std::string> shards;                           // file names, ascending, unique
};

// Errors (kDataLoss, naming `file` and the tensor): not JSON, no weight_map, a tensor twice, a
// value that is not a plain file name (a shard lives beside its index).
Result<ShardIndex> ParseShardIndex(std::string_view text, std::string_view file);

}  // namespace lockstep
