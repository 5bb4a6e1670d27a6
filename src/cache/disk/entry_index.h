// EntryIndex: which entries a folder holds, how large they are, and which of them go first. Plain
// books; knows no files.
//
// Entries of one digest are a node; the node of its parent is before it. A prefix is of no use
// without its beginning, so that a node which others go on from never goes: of those that end a
// prefix, the one that was not used for longest does.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/disk/entry_file.h"

namespace lockstep {

class EntryIndex {
 public:
  // Replaces one of the same node and group. The node counts as used now.
  void Add(const EntryName& name, int64_t bytes);
  // Nothing when it is not there.
  void Remove(const NodeName& node, int32_t group);
  void Use(const NodeName& node);

  // Bit g: group g's entry is there. Of groups below 64.
  uint64_t Groups(const NodeName& node) const;
  std::optional<EntryName> Find(const NodeName& node, int32_t group) const;

  // The entry that goes first; none when there is none.
  std::optional<EntryName> Oldest() const;
  // The entries of the node, and of all nodes that go on from it.
  std::vector<EntryName> Subtree(const NodeName& node) const;

  int64_t bytes() const { return bytes_; }
  int64_t entries() const { return entries_; }

 private:
  struct Node {
    NodeName parent{};
    std::map<int32_t, int64_t> bytes;  // by group
    int64_t children = 0;              // nodes with entries that go on from it
    uint64_t used = 0;
  };
  struct Hash {
    size_t operator()(const NodeName& name) const { return name[0] ^ name[1]; }
  };
  using Nodes = std::unordered_map<NodeName, Node, Hash>;

  void SetUsed(Nodes::iterator node);
  void UpdateEnd(const NodeName& name, const Node& node);
  void RemoveIfEmpty(NodeName name);

  Nodes nodes_;
  std::set<std::pair<uint64_t, NodeName>> ends_;  // nodes with entries and without children
  uint64_t clock_ = 0;
  int64_t bytes_ = 0;
  int64_t entries_ = 0;
};

}  // namespace lockstep
