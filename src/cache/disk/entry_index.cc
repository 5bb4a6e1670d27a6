#include "cache/disk/entry_index.h"

#include <algorithm>

namespace lockstep {

void EntryIndex::Add(const EntryName& name, int64_t bytes) {
  Remove(name.node, name.group);
  const auto at = nodes_.try_emplace(name.node).first;
  const bool first = at->second.bytes.empty();
  if (first) at->second.parent = name.parent;
  at->second.bytes[name.group] = bytes;
  bytes_ += bytes;
  ++entries_;
  SetUsed(at);
  if (!first || name.parent == name.node) return;
  // Counted once a node with entries; a parent that has none of its own is there for the count.
  Node& parent = nodes_[name.parent];
  ++parent.children;
  UpdateEnd(name.parent, parent);
}

void EntryIndex::Remove(const NodeName& name, int32_t group) {
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) return;
  Node& node = at->second;
  const auto entry = node.bytes.find(group);
  if (entry == node.bytes.end()) return;
  bytes_ -= entry->second;
  --entries_;
  node.bytes.erase(entry);
  UpdateEnd(name, node);
  if (!node.bytes.empty()) return;
  const NodeName parent = node.parent;
  RemoveIfEmpty(name);
  const auto above = nodes_.find(parent);
  if (parent == name || above == nodes_.end()) return;
  --above->second.children;
  UpdateEnd(parent, above->second);
  RemoveIfEmpty(parent);
}

void EntryIndex::Use(const NodeName& name) {
  const auto at = nodes_.find(name);
  if (at != nodes_.end()) SetUsed(at);
}

void EntryIndex::SetUsed(Nodes::iterator at) {
  ends_.erase({at->second.used, at->first});
  at->second.used = ++clock_;
  UpdateEnd(at->first, at->second);
}

void EntryIndex::UpdateEnd(const NodeName& name, const Node& node) {
  if (node.children == 0 && !node.bytes.empty()) {
    ends_.emplace(node.used, name);
  } else {
    ends_.erase({node.used, name});
  }
}

void EntryIndex::RemoveIfEmpty(NodeName name) {
  const auto at = nodes_.find(name);
  if (at != nodes_.end() && at->second.bytes.empty() && at->second.children == 0) nodes_.erase(at);
}

uint64_t EntryIndex::Groups(const NodeName& name) const {
  const auto at = nodes_.find(name);
  uint64_t groups = 0;
  if (at == nodes_.end()) return groups;
  for (const auto& [group, bytes] : at->second.bytes) {
    if (group < 64) groups |= uint64_t{1} << group;
  }
  return groups;
}

std::optional<EntryName> EntryIndex::Find(const NodeName& name, int32_t group) const {
  const auto at = nodes_.find(name);
  if (at == nodes_.end() || !at->second.bytes.contains(group)) return std::nullopt;
  return EntryName{name, at->second.parent, group};
}

std::optional<EntryName> EntryIndex::Oldest() const {
  if (entries_ == 0) return std::nullopt;
  // Names that somebody made up may go on from each other in a ring, without an end.
  const auto at = ends_.empty()
                      ? std::find_if(nodes_.begin(), nodes_.end(),
                                     [](auto& node) { return !node.second.bytes.empty(); })
                      : nodes_.find(ends_.begin()->second);
  return EntryName{at->first, at->second.parent, at->second.bytes.begin()->first};
}

std::vector<EntryName> EntryIndex::Subtree(const NodeName& top) const {
  // Whether a node is below `top`, each looked at once.
  std::unordered_map<NodeName, bool, Hash> below = {{top, true}};
  std::vector<EntryName> entries;
  for (const auto& [name, node] : nodes_) {
    std::vector<NodeName> path;
    NodeName at = name;
    bool found = false;
    while (true) {
      const auto known = below.find(at);
      if (known != below.end()) {
        found = known->second;
        break;
      }
      path.push_back(at);
      below.emplace(at, false);  // a ring of names ends here
      const auto above = nodes_.find(at);
      if (above == nodes_.end() || above->second.bytes.empty()) break;
      at = above->second.parent;
    }
    for (const NodeName& passed : path) below[passed] = found;
    if (!found) continue;
    for (const auto& [group, bytes] : node.bytes) entries.push_back({name, node.parent, group});
  }
  return entries;
}

}  // namespace lockstep
