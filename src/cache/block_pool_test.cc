#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(5);
  std::set<BlockId> taken;
  for (int i = 0; i < 5; ++i) taken.insert(pool.Take());
  EXPECT_EQ(taken, (std::set<BlockId>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool.free(), 0);
  EXPECT_EQ(pool.used(), 5);
  EXPECT_TRUE(pool.CheckIntegrity().ok());
}

TEST(BlockPool, ABlockIsFreeWhenItsLastHolderLeaves) {
  BlockPool pool(2);
  const BlockId id = pool.Take();
  pool.Ref(id);
  pool.Unref(id);
  EXPECT_EQ(pool.refs(id), 1);
  EXPECT_EQ(pool.free(), 1);
  pool.Unref(id);
  EXPECT_EQ(pool.free(), 2);
  EXPECT_EQ(pool.Take(), id);
  EXPECT_TRUE(pool.CheckIntegrity().ok());
}

TEST(BlockPoolDeathTest, RefusesWhatWouldCorruptIt) {
  BlockPool pool(1);
  EXPECT_DEATH(pool.Unref(0), "broken invariant");
  EXPECT_DEATH(pool.Ref(0), "broken invariant");
  pool.Take();
  EXPECT_DEATH(pool.Take(), "broken invariant");
}

}  // namespace
}  // namespace lockstep
