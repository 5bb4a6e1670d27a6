// KvManager, its policies and pools against a naive model: 100,000 random operations over random
// cache groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "cache/kv_manager.h"

namespace lockstep {
namespace {

int64_t Ceil(int64_t tokens, int64_t block) { return tokens / block + (tokens % block != 0); }

// What a sequence holds, written down the long way.
struct ModelSequence {
  int64_t tokens = 0;
  int64_t end = 0;   // of the last Reserve
  int64_t most = 0;  // of all of them
  std::vector<std::vector<BlockId>> tables;
};

class Model {
 public:
  Model(std::vector<CacheGroupSpec> groups, int64_t budget)
      : groups_(std::move(groups)), reserved_(groups_.size(), 0) {
    // One token more at a time, until the budget is exceeded.
    while (Bytes(max_tokens_ + 1) <= budget) ++max_tokens_;
  }

  bool Fits(int64_t tokens) const {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (reserved_[g] + Blocks(g, tokens) > Blocks(g, max_tokens_)) return false;
    }
    return true;
  }
  void Admit(CacheSlot slot, int64_t tokens) {
    ASSERT_EQ(sequences.count(slot), 0u);
    sequences[slot] = {tokens, 0, 0, std::vector<std::vector<BlockId>>(groups_.size())};
    for (size_t g = 0; g < groups_.size(); ++g) reserved_[g] += Blocks(g, tokens);
  }
  void Release(CacheSlot slot) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      reserved_[g] -= Blocks(g, sequences[slot].tokens);
    }
    sequences.erase(slot);
  }

  int64_t Blocks(size_t g, int64_t tokens) const { return Ceil(tokens, groups_[g].block_tokens); }
  int64_t Bytes(int64_t tokens) const {
    int64_t bytes = 0;
    for (size_t g = 0; g < groups_.size(); ++g) bytes += Blocks(g, tokens) * groups_[g].block_bytes;
    return bytes;
  }
  int64_t reserved_bytes() const {
    int64_t bytes = 0;
    for (const auto& [slot, sequence] : sequences) bytes += Bytes(sequence.tokens);
    return bytes;
  }
  int64_t used_bytes() const {
    int64_t bytes = 0;
    for (const auto& [slot, sequence] : sequences) bytes += Bytes(sequence.most);
    return bytes;
  }
  int64_t max_tokens() const { return max_tokens_; }

  std::map<CacheSlot, ModelSequence> sequences;

 private:
  const std::vector<CacheGroupSpec> groups_;
  std::vector<int64_t> reserved_;
  int64_t max_tokens_ = 0;
};

// The tables cover exactly what was asked for, keep what they held, and share no block.
void CheckTables(const KvManager& kv, const std::vector<CacheGroupSpec>& groups, Model* model) {
  for (size_t g = 0; g < groups.size(); ++g) {
    std::set<BlockId> held;
    for (auto& [slot, sequence] : model->sequences) {
      const auto table = kv.BlockTables(slot)[g];
      std::vector<BlockId>& known = sequence.tables[g];
      ASSERT_EQ(static_cast<int64_t>(table.size()), model->Blocks(g, sequence.end));
      const size_t common = std::min(known.size(), table.size());
      ASSERT_TRUE(std::equal(table.begin(), table.begin() + common, known.begin()));
      known.insert(known.end(), table.begin() + common, table.end());
      ASSERT_EQ(static_cast<int64_t>(known.size()), model->Blocks(g, sequence.most));
      for (const BlockId id : known) {
        ASSERT_TRUE(id >= 0 && id < kv.pool_blocks()[g]);
        ASSERT_TRUE(held.insert(id).second) << "shared block " << id;
      }
    }
  }
}

void RunRandomOperations(uint64_t seed, int operations) {
  std::mt19937_64 random(seed);
  std::vector<CacheGroupSpec> groups(1 + random() % 3);
  int64_t smallest = 0;
  for (CacheGroupSpec& group : groups) {
    group.block_tokens = static_cast<int32_t>(1 + random() % 20);
    group.block_bytes = static_cast<int64_t>(1 + random() % 1000);
    smallest += group.block_bytes;
  }
  const int64_t budget = smallest * static_cast<int64_t>(1 + random() % 12);
  auto made = KvManager::Create(groups, budget);
  ASSERT_TRUE(made.ok());
  KvManager& kv = **made;
  Model model(groups, budget);
  ASSERT_LE(kv.budget_bytes(), budget);
  ASSERT_EQ(kv.max_tokens(), model.max_tokens());

  for (int n = 0; n < operations; ++n) {
    const uint64_t choice = random() % 10;
    if (choice < 3) {
      const auto tokens = static_cast<int64_t>(1 + random() % (model.max_tokens() + 3));
      ASSERT_EQ(kv.CanEverFit(tokens), tokens <= model.max_tokens());
      const auto slot = kv.Admit(tokens);
      ASSERT_EQ(slot.has_value(), model.Fits(tokens));
      if (slot) model.Admit(*slot, tokens);
    } else if (!model.sequences.empty()) {
      const auto at = std::next(model.sequences.begin(),
                                static_cast<int64_t>(random() % model.sequences.size()));
      ModelSequence& sequence = at->second;
      if (choice < 9) {
        // Often to an end that is covered already.
        const auto end = static_cast<int64_t>(random() % (sequence.tokens + 1));
        kv.Reserve(at->first, end);
        sequence.end = end;
        sequence.most = std::max(sequence.most, end);
      } else {
        kv.Release(at->first);
        model.Release(at->first);
      }
    }
    CheckTables(kv, groups, &model);
    ASSERT_EQ(kv.reserved_bytes(), model.reserved_bytes());
    ASSERT_EQ(kv.used_bytes(), model.used_bytes());
    ASSERT_LE(kv.used_bytes(), kv.reserved_bytes());
    ASSERT_LE(kv.reserved_bytes(), kv.budget_bytes());
    const Status status = kv.CheckIntegrity();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
}

TEST(KvManagerProperty, AgreesWithANaiveModel) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RunRandomOperations(seed, 1000);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace lockstep
