// Saving and restoring against a naive model: 100,000 random operations over random cache groups.
// The model writes into each block what its positions stand for, a hash of all the tokens up to
// there; saves what the manager says is to be saved; loses some of it; and puts it into the blocks
// that the manager says it belongs to. Whoever reads a block must find what it would have written
// itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/kv_manager.h"

namespace lockstep {
namespace {

using Tokens = std::vector<TokenId>;
using Content = std::vector<uint64_t>;  // of a block: a hash a position, or that of a state

uint64_t Chain(uint64_t before, TokenId token) {
  uint64_t hash = (before ^ static_cast<uint64_t>(token + 77)) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
  return hash * 0xbf58476d1ce4e5b9u | 2;
}

struct ModelSequence {
  Tokens tokens;
  Content hashes;  // [i]: of tokens [0, i)
  int64_t computed = 0;
};

class Operations {
 public:
  explicit Operations(uint64_t seed) : random_(seed) {
    constexpr int32_t kSizes[] = {1, 2, 3, 4, 6};
    groups_.resize(static_cast<size_t>(Pick(1, 3)));
    for (CacheGroupSpec& group : groups_) {
      group.kind = static_cast<CacheKind>(Pick(0, 3));
      group.block_tokens = kSizes[Pick(0, 4)];
      group.block_bytes = 1;
      if (group.kind != CacheKind::kWindow) continue;
      group.window = static_cast<int32_t>(Pick(1, 20));
      group.sinks = static_cast<int32_t>(Pick(0, 1) * Pick(0, 9));
    }
    step_ = Pick(1, 30);
    const int64_t one = SequenceBytes(groups_, 1, step_).value();
    kv_ = KvManager::Create(groups_, one * Pick(10, 200),
                            {.rows = static_cast<int32_t>(Pick(1, 4)),
                             .step_tokens = static_cast<int32_t>(step_),
                             .context = 120,
                             .save_identity = "model"})
              .value();
    stored_.resize(groups_.size());
  }
  void Operate();

  int restored = 0;
  int given_up = 0;
  uint64_t saved = 0;
  uint64_t never_saved() const { return kv_->never_saved(); }

 private:
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }
  bool IsState(size_t g) const { return groups_[g].kind == CacheKind::kRecurrent; }
  Content& Stored(size_t g, BlockId block) {
    Content& content = stored_[g][block];
    content.resize(IsState(g) ? 1 : static_cast<size_t>(groups_[g].block_tokens));
    return content;
  }

  void Admit();
  void Compute(CacheSlot slot, ModelSequence* sequence);
  void CheckReads(CacheSlot slot, const ModelSequence& sequence);
  void Save();
  void Restore(CacheSlot slot, ModelSequence* sequence);

  std::mt19937_64 random_;
  std::vector<CacheGroupSpec> groups_;
  int64_t step_ = 0;
  std::unique_ptr<KvManager> kv_;
  std::map<CacheSlot, ModelSequence> live_;
  std::vector<std::map<BlockId, Content>> stored_;                        // [group]
  std::map<std::pair<ChainDigest, int32_t>, std::vector<Content>> kept_;  // elsewhere
};

void Operations::Admit() {
  const int64_t length = Pick(1, std::min<int64_t>(kv_->max_tokens(), 100));
  const std::string name_space = Chance(15) ? "salt" : "";
  const auto slot = kv_->Admit(length, name_space);
  if (!slot) return;
  ModelSequence& sequence = live_[*slot] = {};
  sequence.hashes = {Chain(0, name_space.empty() ? 1 : 2)};
  const auto base = static_cast<TokenId>(Pick(0, 1) * 1000);
  const int64_t turn = Chance(60) ? length : Pick(0, length);
  for (int64_t i = 0; i < length; ++i) {
    sequence.tokens.push_back(i < turn ? base + static_cast<TokenId>(i)
                                       : static_cast<TokenId>(Pick(0, 2)));
    sequence.hashes.push_back(Chain(sequence.hashes.back(), sequence.tokens.back()));
  }
}

void Operations::CheckReads(CacheSlot slot, const ModelSequence& sequence) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const CacheGroupSpec& spec = groups_[g];
    const auto table = kv_->BlockTables(slot)[g];
    if (IsState(g)) {
      ASSERT_EQ(table[0] == kNoBlock, sequence.computed == 0);
      if (table[0] == kNoBlock) continue;
      ASSERT_EQ(Stored(g, table[0])[0], sequence.hashes[static_cast<size_t>(sequence.computed)]);
      continue;
    }
    for (int64_t p = 0; p < sequence.computed; ++p) {
      const bool read =
          spec.kind != CacheKind::kWindow || p < spec.sinks || p > sequence.computed - spec.window;
      if (!read) continue;
      const BlockId block = table[static_cast<size_t>(p / spec.block_tokens)];
      ASSERT_NE(block, kNoBlock);
      ASSERT_EQ(Stored(g, block)[static_cast<size_t>(p % spec.block_tokens)],
                sequence.hashes[static_cast<size_t>(p) + 1])
          << "group " << g << " position " << p;
    }
  }
}

void Operations::Compute(CacheSlot slot, ModelSequence* sequence) {
  const auto length = static_cast<int64_t>(sequence->tokens.size());
  int64_t end = std::min(length, sequence->computed + Pick(1, step_));
  if (end == sequence->computed) return;
  end = kv_->ChunkEnd(slot, end, length - 1);
  kv_->Reserve(slot, end);
  CheckReads(slot, *sequence);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto table = kv_->BlockTables(slot)[g];
    if (IsState(g)) {
      Stored(g, table[1])[0] = sequence->hashes[static_cast<size_t>(end)];
      continue;
    }
    const int64_t size = groups_[g].block_tokens;
    for (int64_t p = sequence->computed; p < end; ++p) {
      Stored(g, table[static_cast<size_t>(p / size)])[static_cast<size_t>(p % size)] =
          sequence->hashes[static_cast<size_t>(p) + 1];
    }
  }
  if (Chance(10)) return;  // the step failed
  kv_->Commit(slot, std::span(sequence->tokens).first(static_cast<size_t>(end)));
  sequence->computed = end;
}

void Operations::Save() {
  for (const ChainDigest& digest : kv_->TakeBanned()) {
    std::erase_if(kept_, [&](const auto& entry) { return entry.first.first == digest; });
  }
  const uint64_t all = kv_->last_to_save();
  for (int64_t n = Pick(1, 20); n > 0; --n) {
    const auto parts = kv_->NextToSave();
    if (parts.empty()) {
      ASSERT_EQ(kv_->saved_up_to(), all);
      break;
    }
    for (const KvManager::SpanPart& part : parts) {
      std::vector<Content>& kept = kept_[{part.digest, part.group}];
      kept.clear();
      for (const BlockId block : part.blocks) {
        ASSERT_NE(block, kNoBlock);
        kept.push_back(Stored(static_cast<size_t>(part.group), block));
      }
      ++saved;
    }
    kv_->Saved();
  }
  // Some of it is lost.
  if (Chance(20) && !kept_.empty()) {
    kept_.erase(std::next(kept_.begin(), Pick(0, static_cast<int64_t>(kept_.size()) - 1)));
  }
}

void Operations::Restore(CacheSlot slot, ModelSequence* sequence) {
  const int64_t limit = static_cast<int64_t>(sequence->tokens.size()) - 1;
  sequence->computed = kv_->Adopt(slot, sequence->tokens, Chance(50) ? limit : Pick(0, limit));
  const auto digests = kv_->SpansToCome(slot, sequence->tokens, limit);
  std::vector<uint64_t> elsewhere;
  for (const ChainDigest& digest : digests) {
    uint64_t there = 0;
    for (int32_t g = 0; g < static_cast<int32_t>(groups_.size()); ++g) {
      there |= uint64_t{kept_.contains({digest, g})} << g;
    }
    elsewhere.push_back(there);
  }
  const int64_t end = kv_->Restorable(slot, elsewhere);
  ASSERT_GE(end, sequence->computed);
  ASSERT_LE(end, std::max(limit, sequence->computed));
  if (end == sequence->computed) return;
  const auto parts = kv_->BeginRestore(slot, end, digests);
  ASSERT_TRUE(kv_->CheckIntegrity().ok());
  for (const KvManager::SpanPart& part : parts) {
    const auto g = static_cast<size_t>(part.group);
    for (size_t i = 0; i < part.blocks.size(); ++i) {
      if (part.blocks[i] == kNoBlock) continue;
      // Nobody else reads what is written.
      for (const auto& [other, unused] : live_) {
        if (other == slot) continue;
        const auto table = kv_->BlockTables(other)[g];
        ASSERT_EQ(std::count(table.begin(), table.end(), part.blocks[i]), 0);
      }
      Stored(g, part.blocks[i]) = kept_.at({part.digest, part.group})[i];
    }
  }
  if (Chance(15)) {
    kv_->GiveUpRestore(slot);
    sequence->computed = 0;
    ++given_up;
    return;
  }
  kv_->FinishRestore(slot, std::span(sequence->tokens).first(static_cast<size_t>(end)));
  sequence->computed = end;
  ++restored;
}

void Operations::Operate() {
  const int64_t choice = Pick(0, 99);
  if (choice < 15 || live_.empty()) {
    Admit();
  } else if (choice < 35) {
    Save();
  } else {
    const auto at = std::next(live_.begin(), Pick(0, static_cast<int64_t>(live_.size()) - 1));
    if (choice < 50 && at->second.tokens.size() > 1 &&
        at->second.computed < static_cast<int64_t>(at->second.tokens.size())) {
      Restore(at->first, &at->second);
    } else if (choice < 90) {
      Compute(at->first, &at->second);
    } else {
      kv_->Release(at->first, Chance(10));
      live_.erase(at);
    }
  }
  const Status status = kv_->CheckIntegrity();
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_LE(kv_->used_bytes() + kv_->cached_bytes(), kv_->budget_bytes());
}

TEST(KvRestoreProperty, AgreesWithANaiveModel) {
  int restored = 0;
  int given_up = 0;
  uint64_t saved = 0;
  uint64_t never_saved = 0;
  for (uint64_t seed = 0; seed < 250; ++seed) {
    Operations run(seed);
    for (int n = 0; n < 400; ++n) {
      run.Operate();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << " operation " << n;
    }
    restored += run.restored;
    given_up += run.given_up;
    saved += run.saved;
    never_saved += run.never_saved();
  }
  // The operations reach what they are meant to reach.
  EXPECT_GT(restored, 500);
  EXPECT_GT(given_up, 50);
  EXPECT_GT(saved, 10000u);
  EXPECT_GT(never_saved, 500u);
}

}  // namespace
}  // namespace lockstep
