#include "cache/disk/entry_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace lockstep {
namespace {

NodeName N(uint64_t number) { return {number, 7}; }
EntryName E(uint64_t node, uint64_t parent, int32_t group = 0) {
  return {N(node), N(parent), group};
}

// In the order in which they go.
std::vector<uint64_t> Order(EntryIndex index) {
  std::vector<uint64_t> order;
  while (const auto oldest = index.Oldest()) {
    order.push_back(oldest->node[0]);
    index.Remove(oldest->node, oldest->group);
  }
  EXPECT_EQ(index.bytes(), 0);
  EXPECT_EQ(index.entries(), 0);
  return order;
}

TEST(EntryIndex, AChainGoesFromItsEnd) {
  EntryIndex index;
  for (uint64_t n = 1; n <= 4; ++n) index.Add(E(n, n - 1), 10);
  index.Add(E(9, 2), 10);
  index.Add(E(20, 0), 10);
  EXPECT_EQ(index.bytes(), 60);
  EXPECT_EQ(Order(index), (std::vector<uint64_t>{4, 3, 9, 2, 1, 20}));
  index.Use(N(4));
  EXPECT_EQ(Order(index), (std::vector<uint64_t>{9, 20, 4, 3, 2, 1}));
}

TEST(EntryIndex, EntriesMayComeInAnyOrder) {
  EntryIndex index;
  for (uint64_t n = 4; n >= 1; --n) index.Add(E(n, n - 1), 10);
  EXPECT_EQ(Order(index), (std::vector<uint64_t>{4, 3, 2, 1}));
}

TEST(EntryIndex, GroupsAreEntriesOfTheirOwn) {
  EntryIndex index;
  index.Add(E(1, 0, 0), 10);
  index.Add(E(1, 0, 5), 20);
  index.Add(E(1, 0, 5), 30);  // replaced
  EXPECT_EQ(index.bytes(), 40);
  EXPECT_EQ(index.entries(), 2);
  EXPECT_EQ(index.Groups(N(1)), 0b100001u);
  EXPECT_EQ(index.Find(N(1), 5), E(1, 0, 5));
  index.Remove(N(1), 0);
  EXPECT_EQ(index.Groups(N(1)), 0b100000u);
  EXPECT_FALSE(index.Find(N(1), 0).has_value());
}

TEST(EntryIndex, ASubtreeIsAllThatGoesOnFromIt) {
  EntryIndex index;
  for (uint64_t n = 1; n <= 4; ++n) index.Add(E(n, n - 1), 10);
  index.Add(E(9, 2, 3), 10);
  index.Add(E(20, 0), 10);
  std::vector<uint64_t> found;
  for (const EntryName& name : index.Subtree(N(2))) found.push_back(name.node[0]);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<uint64_t>{2, 3, 4, 9}));
}

TEST(EntryIndex, NamesInARingGoToo) {
  EntryIndex index;
  index.Add(E(1, 2), 10);
  index.Add(E(2, 1), 10);
  index.Add(E(3, 3), 10);
  EXPECT_EQ(Order(index).size(), 3u);
  EXPECT_EQ(index.Subtree(N(4)).size(), 0u);
}

// Against the definition: of the entries whose node nobody goes on from, the least recently used.
TEST(EntryIndex, AgreesWithANaiveModel) {
  struct Known {
    EntryName name;
    int64_t bytes;
  };
  std::mt19937_64 random(1);
  const auto pick = [&](uint64_t n) { return random() % n; };
  for (int run = 0; run < 50; ++run) {
    EntryIndex index;
    std::vector<Known> known;
    std::map<NodeName, int> used;
    for (int n = 1; n <= 300; ++n) {
      const uint64_t node = 1 + pick(30);
      const auto group = static_cast<int32_t>(pick(2));
      const auto same = [&](const Known& k) {
        return k.name.node == N(node) && k.name.group == group;
      };
      if (pick(3) != 0) {
        std::erase_if(known, same);
        known.push_back({E(node, node / 2, group), static_cast<int64_t>(pick(100))});
        index.Add(known.back().name, known.back().bytes);
        used[N(node)] = n;
      } else if (pick(2) == 0) {
        std::erase_if(known, same);
        index.Remove(N(node), group);
      } else if (index.Groups(N(node)) != 0) {
        index.Use(N(node));
        used[N(node)] = n;
      }
      int64_t bytes = 0;
      std::set<NodeName> parents;
      for (const Known& k : known) {
        bytes += k.bytes;
        parents.insert(k.name.parent);
      }
      ASSERT_EQ(index.bytes(), bytes);
      ASSERT_EQ(index.entries(), static_cast<int64_t>(known.size()));
      int oldest = 1 << 30;
      for (const Known& k : known) {
        if (!parents.contains(k.name.node)) oldest = std::min(oldest, used[k.name.node]);
      }
      const auto found = index.Oldest();
      ASSERT_EQ(found.has_value(), !known.empty());
      if (found) {
        ASSERT_EQ(used[found->node], oldest);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
