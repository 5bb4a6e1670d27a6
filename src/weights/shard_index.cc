#include "weights/shard_index.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <set>

#include "weights/printable.h"

namespace lockstep {
namespace {

bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

}  // namespace

Result<ShardIndex> ParseShardIndex(std::string_view text, std::string_view file) {
  const auto corrupt = [&](std::string_view what) {
    return DataLoss(fmt::format("{}: {}", file, what));
  };
  if (text.empty())
    return corrupt("is empty");  // its pointer may be null, which simdjson would copy from
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const auto error =
      parser.parse(reinterpret_cast<const uint8_t*>(text.data()), text.size()).get(root);
  if (error) return corrupt(fmt::format("is not JSON: {}", simdjson::error_message(error)));
  simdjson::dom::object map;
  if (root["weight_map"].get(map)) return corrupt("has no object 'weight_map'");
  ShardIndex index;
  std::set<std::string_view> shards;
  for (const auto [name, value] : map) {
    std::string_view shard;
    if (value.get(shard) || !IsPlainFileName(shard)) {
      return corrupt(fmt::format("weight_map: '{}': expected the name of a file in this folder",
                                 Printable(name)));
    }
    if (!index.shard_of.emplace(name, shard).second) {
      return corrupt(fmt::format("weight_map: '{}' appears twice", Printable(name)));
    }
    shards.insert(shard);
  }
  if (shards.empty()) return corrupt("weight_map is empty");
  index.shards.assign(shards.begin(), shards.end());
  return index;
}

}  // namespace lockstep
