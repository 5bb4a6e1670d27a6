#include "cache/prefix_tree.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Span = std::vector<TokenId>;

TEST(PrefixTree, ANodeIsASpanAfterItsParent) {
  PrefixTree tree(2, 1);
  PrefixNode* const root = tree.PinRoot("");
  PrefixNode* const a = tree.Add(root, Span{1, 2});
  tree.Pin(a);
  PrefixNode* const b = tree.Add(a, Span{1, 2});
  EXPECT_EQ(tree.Find(root, Span{1, 2}), a);
  EXPECT_EQ(tree.Find(a, Span{1, 2}), b);
  EXPECT_EQ(tree.Find(root, Span{2, 1}), nullptr);
  EXPECT_EQ(tree.Find(b, Span{1, 2}), nullptr);
  EXPECT_EQ(b->depth, 2);
}

TEST(PrefixTree, ANodeStaysAsLongAsAnythingNeedsIt) {
  PrefixTree tree(2, 2);
  PrefixNode* const root = tree.PinRoot("salt");
  PrefixNode* const a = tree.Add(root, Span{1, 2});
  tree.Pin(a);
  tree.Unpin(root);
  PrefixNode* const b = tree.Add(a, Span{3, 4});
  tree.Put(b, 1, 7);
  tree.Unpin(a);
  EXPECT_EQ(tree.nodes().size(), 3u);  // b holds a block, and the others lead to it
  tree.Put(a, 0, 5);
  tree.Clear(b, 1);
  EXPECT_EQ(tree.nodes().size(), 2u);
  tree.Clear(a, 0);
  EXPECT_EQ(tree.nodes().size(), 0u);
  tree.Unpin(tree.PinRoot("salt"));
  EXPECT_EQ(tree.nodes().size(), 0u);
}

TEST(PrefixTree, NobodyFindsWhatIsHiddenAndItsPlaceIsFree) {
  PrefixTree tree(1, 1);
  PrefixNode* const root = tree.PinRoot("");
  PrefixNode* const a = tree.Add(root, Span{1});
  tree.Pin(a);
  tree.Put(a, 0, 3);
  tree.Hide(a);
  tree.Hide(a);
  EXPECT_EQ(tree.Find(root, Span{1}), nullptr);
  PrefixNode* const again = tree.Add(root, Span{1});
  tree.Put(again, 0, 4);
  EXPECT_EQ(tree.Find(root, Span{1}), again);
  tree.Unpin(a);
  tree.Clear(a, 0);
  EXPECT_EQ(tree.Find(root, Span{1}), again);
  EXPECT_EQ(tree.nodes().size(), 2u);
}

TEST(PrefixTree, NamespacesHaveRootsOfTheirOwn) {
  PrefixTree tree(1, 1);
  PrefixNode* const a = tree.PinRoot("a");
  EXPECT_EQ(tree.PinRoot("a"), a);
  EXPECT_NE(tree.PinRoot("b"), a);
}

}  // namespace
}  // namespace lockstep
