// KvManager, its policies, pools and prefix tree against a naive model: 100,000 random operations
// over random cache groups. The model writes into each block what its positions stand for: a hash
// of all the tokens up to there. Whoever reads a block must find what it would have written itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/kv_manager.h"

namespace lockstep {
namespace {

using Tokens = std::vector<TokenId>;

constexpr uint64_t kRubbish = 1;

uint64_t Chain(uint64_t before, TokenId token) {
  uint64_t hash = (before ^ static_cast<uint64_t>(token + 77)) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
  return hash * 0xbf58476d1ce4e5b9u | 2;
}

struct ModelSequence {
  int64_t number = 0;  // its own
  std::string name_space;
  Tokens tokens;
  int64_t prompt = 0;
  int64_t computed = 0;
  std::vector<uint64_t> hashes;  // [i]: of tokens [0, i)
  std::vector<int64_t> since;    // [i]: when position i became computed, in operations
  int64_t stop = 0;              // somebody waits for what is computed up to there; 0: nobody
};

// What stands in a block, and who wrote it.
struct ModelBlock {
  std::vector<uint64_t> hashes;  // [position in it]; of a state: one
  int64_t writer = -1;
};

class Operations {
 public:
  explicit Operations(uint64_t seed) : random_(seed) { MakeConfiguration(); }
  void Operate();

  uint64_t adopted() const { return adopted_; }
  uint64_t waits() const { return waits_; }
  uint64_t evictions() const { return kv_->evictions(); }

 private:
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }

  void MakeConfiguration();
  Tokens MakeTokens(int64_t length);
  void Admit();
  void Adopt(CacheSlot slot, ModelSequence* sequence);
  void Compute(CacheSlot slot, ModelSequence* sequence);
  void CheckReads(CacheSlot slot, const ModelSequence& sequence, int64_t end);
  void CheckWriter(const ModelBlock& block, int64_t since) const;
  // Whether `sequence` would learn something from what `other` is about to compute, and up to
  // where they agree.
  int64_t Common(const ModelSequence& sequence, int64_t limit, const ModelSequence& other) const;
  void Write(CacheSlot slot, const ModelSequence& sequence, int64_t end, bool rubbish);
  void CheckTotals();
  bool IsState(size_t g) const { return groups_[g].kind == CacheKind::kRecurrent; }
  int64_t LongestKnown(const ModelSequence& sequence, int64_t limit) const;

  std::mt19937_64 random_;
  std::vector<CacheGroupSpec> groups_;
  int64_t budget_ = 0;
  int64_t step_tokens_ = 0;
  std::unique_ptr<KvManager> kv_;
  std::map<CacheSlot, ModelSequence> live_;
  std::vector<std::map<BlockId, ModelBlock>> written_;     // [group]
  std::map<int64_t, int64_t> failed_;                      // sequences, and when they failed
  std::vector<std::pair<std::string, Tokens>> committed_;  // all that was ever computed
  bool exact_ = false;  // nothing that was computed can have been lost
  bool has_states_ = false;
  int64_t now_ = 0;
  int64_t sequences_ = 0;
  uint64_t adopted_ = 0;
  uint64_t waits_ = 0;
};

void Operations::MakeConfiguration() {
  constexpr int32_t kSizes[] = {1, 2, 3, 4, 6, 8, 12};
  groups_.resize(static_cast<size_t>(Pick(1, 3)));
  exact_ = true;
  for (CacheGroupSpec& group : groups_) {
    group.kind = static_cast<CacheKind>(Pick(0, 3));
    group.block_tokens = kSizes[Pick(0, 6)];
    group.block_bytes = Pick(1, 1000);
    if (group.kind == CacheKind::kWindow) {
      group.window = static_cast<int32_t>(Pick(1, 30));
      group.sinks = static_cast<int32_t>(Chance(50) ? 0 : Pick(1, 9));
    }
    exact_ &= group.kind == CacheKind::kPaged || group.kind == CacheKind::kLatent;
    has_states_ |= group.kind == CacheKind::kRecurrent;
  }
  step_tokens_ = Pick(1, 40);
  const KvOptions options{.rows = static_cast<int32_t>(Pick(1, 6)),
                          .step_tokens = static_cast<int32_t>(step_tokens_),
                          .context = static_cast<int32_t>(Pick(20, 200))};
  const int64_t one = SequenceBytes(groups_, 1, step_tokens_).value();
  budget_ = Chance(30) ? one * 3000 : one * Pick(2, 60);
  kv_ = KvManager::Create(groups_, budget_, options).value();
  written_.resize(groups_.size());
}

// Sequences begin like one of a few, and turn off somewhere.
Tokens Operations::MakeTokens(int64_t length) {
  Tokens tokens;
  if (Chance(10)) return Tokens(static_cast<size_t>(length), 5);  // the same at any place
  const TokenId base = static_cast<TokenId>(Pick(0, 2) * 1000);
  const int64_t turn = Chance(20) ? length : Pick(0, length);
  for (int64_t i = 0; i < length; ++i) {
    tokens.push_back(i < turn ? base + static_cast<TokenId>(i) : static_cast<TokenId>(Pick(0, 2)));
  }
  return tokens;
}

void Operations::Admit() {
  const int64_t length = Pick(1, std::min<int64_t>(kv_->max_tokens(), 150));
  ModelSequence sequence;
  sequence.number = sequences_++;
  sequence.name_space = Chance(15) ? "salt" : "";
  sequence.tokens = MakeTokens(length);
  sequence.prompt = Pick(1, length);
  sequence.hashes = {Chain(0, sequence.name_space.empty() ? 1 : 2)};
  for (const TokenId token : sequence.tokens) {
    sequence.hashes.push_back(Chain(sequence.hashes.back(), token));
  }
  ASSERT_TRUE(kv_->CanEverFit(length));
  const auto slot = kv_->Admit(length, sequence.name_space);
  ASSERT_TRUE(slot.has_value() || !live_.empty()) << "alone, and it does not fit";
  if (slot) live_[*slot] = std::move(sequence);
}

int64_t Operations::LongestKnown(const ModelSequence& sequence, int64_t limit) const {
  int64_t longest = 0;
  for (const auto& [name_space, tokens] : committed_) {
    if (name_space != sequence.name_space) continue;
    const auto end =
        std::mismatch(tokens.begin(), tokens.end(), sequence.tokens.begin(), sequence.tokens.end());
    longest = std::max<int64_t>(longest, end.first - tokens.begin());
  }
  return std::min(longest, limit) / kv_->span_tokens() * kv_->span_tokens();
}

void Operations::Adopt(CacheSlot slot, ModelSequence* sequence) {
  const int64_t limit = std::min(sequence->prompt - 1, Pick(0, 200));
  const std::span<const TokenId> known(sequence->tokens.data(),
                                       static_cast<size_t>(sequence->prompt));
  const int64_t computed = kv_->Adopt(slot, known, limit);
  ASSERT_GE(computed, sequence->computed);
  if (computed > sequence->computed) {
    ASSERT_LE(computed, limit);
    ASSERT_EQ(computed % kv_->span_tokens(), 0);
  }
  if (exact_ && kv_->evictions() == 0 && sequence->computed % kv_->span_tokens() == 0) {
    ASSERT_EQ(computed, std::max(sequence->computed, LongestKnown(*sequence, limit)));
  }
  adopted_ += static_cast<uint64_t>(computed - sequence->computed);
  sequence->computed = computed;
  sequence->since.resize(static_cast<size_t>(computed), now_);
  sequence->stop = 0;
  for (auto& [other_slot, other] : live_) {
    if (other_slot == slot) continue;
    if (!kv_->LearnsFrom(slot, sequence->tokens, limit, other_slot, other.tokens)) continue;
    ++waits_;
    ASSERT_EQ(computed % kv_->span_tokens(), 0);
    const int64_t common = Common(*sequence, limit, other);
    ASSERT_GT(common, other.computed);
    other.stop = other.stop == 0 ? common : std::min(other.stop, common);
  }
}

int64_t Operations::Common(const ModelSequence& sequence, int64_t limit,
                           const ModelSequence& other) const {
  const int64_t span = kv_->span_tokens();
  limit = std::min(limit, static_cast<int64_t>(other.tokens.size()));
  // A state has to be planned; all else as far as the next step may come.
  const int64_t reach = std::max(sequence.computed + span, other.computed + step_tokens_);
  if (!has_states_) limit = std::min(limit, reach);
  int64_t common = 0;
  while (common + span <= limit && other.hashes[static_cast<size_t>(common + span)] ==
                                       sequence.hashes[static_cast<size_t>(common + span)]) {
    common += span;
  }
  return common;
}

// What a sequence computed that failed since is not given to others.
void Operations::CheckWriter(const ModelBlock& block, int64_t since) const {
  const auto failed = failed_.find(block.writer);
  ASSERT_TRUE(failed == failed_.end() || failed->second >= since);
}

// A step that is to compute up to `end` finds all that it reads.
void Operations::CheckReads(CacheSlot slot, const ModelSequence& sequence, int64_t end) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const CacheGroupSpec& spec = groups_[g];
    const auto table = kv_->BlockTables(slot)[g];
    if (IsState(g)) {
      ASSERT_EQ(table.size(), 2u);
      ASSERT_EQ(table[0] == kNoBlock, sequence.computed == 0);
      if (table[0] == kNoBlock) continue;
      const ModelBlock& state = written_[g][table[0]];
      ASSERT_EQ(state.hashes[0], sequence.hashes[static_cast<size_t>(sequence.computed)]);
      CheckWriter(state, sequence.since.back());
      continue;
    }
    ASSERT_EQ(static_cast<int64_t>(table.size()), (end - 1) / spec.block_tokens + 1);
    for (int64_t p = 0; p < sequence.computed; ++p) {
      const bool read =
          spec.kind != CacheKind::kWindow || p < spec.sinks || p > sequence.computed - spec.window;
      const BlockId block = table[static_cast<size_t>(p / spec.block_tokens)];
      if (!read) continue;
      ASSERT_NE(block, kNoBlock);
      const ModelBlock& written = written_[g][block];
      ASSERT_EQ(written.hashes[static_cast<size_t>(p % spec.block_tokens)],
                sequence.hashes[static_cast<size_t>(p) + 1])
          << "group " << g << " position " << p;
      CheckWriter(written, sequence.since[static_cast<size_t>(p)]);
    }
  }
}

void Operations::Write(CacheSlot slot, const ModelSequence& sequence, int64_t end, bool rubbish) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int64_t size = groups_[g].block_tokens;
    const auto table = kv_->BlockTables(slot)[g];
    const size_t first = IsState(g) ? 1 : static_cast<size_t>(sequence.computed / size);
    for (const BlockId block : table.subspan(first)) {
      ASSERT_NE(block, kNoBlock);
      for (const auto& [other, unused] : live_) {
        if (other == slot) continue;
        const auto others = kv_->BlockTables(other)[g];
        ASSERT_EQ(std::count(others.begin(), others.end(), block), 0) << "written under another";
      }
    }
    if (IsState(g)) {
      const uint64_t state = rubbish ? kRubbish : sequence.hashes[static_cast<size_t>(end)];
      written_[g][table[1]] = {{state}, sequence.number};
      continue;
    }
    for (int64_t p = sequence.computed; p < end; ++p) {
      ModelBlock& block = written_[g][table[static_cast<size_t>(p / size)]];
      block.writer = sequence.number;
      block.hashes.resize(static_cast<size_t>(size), kRubbish);
      block.hashes[static_cast<size_t>(p % size)] =
          rubbish ? kRubbish : sequence.hashes[static_cast<size_t>(p) + 1];
    }
  }
}

void Operations::Compute(CacheSlot slot, ModelSequence* sequence) {
  const auto length = static_cast<int64_t>(sequence->tokens.size());
  int64_t end = std::min(length, sequence->computed + Pick(1, step_tokens_));
  if (end == sequence->computed) return;
  if (end <= sequence->prompt) {
    const int64_t asked = end;
    end = kv_->ChunkEnd(slot, end, sequence->prompt - 1);
    ASSERT_LE(end, asked);
    ASSERT_GT(end, sequence->computed);
    if (sequence->stop > sequence->computed) {
      ASSERT_LE(end, sequence->stop);
    }
    if (!has_states_ && sequence->stop == 0) {
      ASSERT_EQ(end, asked);
    }
  }
  kv_->Reserve(slot, end);
  CheckReads(slot, *sequence, end);
  Write(slot, *sequence, end, /*rubbish=*/true);
  if (Chance(15)) return;  // the step failed
  Write(slot, *sequence, end, /*rubbish=*/false);
  const auto computed = std::span(sequence->tokens).first(static_cast<size_t>(end));
  kv_->Commit(slot, computed);
  sequence->computed = end;
  sequence->since.resize(static_cast<size_t>(end), now_);
  if (exact_)
    committed_.emplace_back(sequence->name_space, Tokens(computed.begin(), computed.end()));
}

void Operations::CheckTotals() {
  int64_t reserved = 0;
  for (const auto& [slot, sequence] : live_) {
    reserved +=
        SequenceBytes(groups_, static_cast<int64_t>(sequence.tokens.size()), step_tokens_).value();
  }
  ASSERT_EQ(kv_->reserved_bytes(), reserved);
  ASSERT_LE(kv_->used_bytes(), reserved);
  ASSERT_LE(reserved, kv_->budget_bytes());
  ASSERT_LE(kv_->used_bytes() + kv_->cached_bytes(), kv_->budget_bytes());
  ASSERT_LE(kv_->budget_bytes(), budget_);
  ASSERT_TRUE(!live_.empty() || kv_->used_bytes() == 0);
  const Status status = kv_->CheckIntegrity();
  ASSERT_TRUE(status.ok()) << status.ToString();
}

void Operations::Operate() {
  ++now_;
  const int64_t choice = Pick(0, 99);
  if (choice < 15 || live_.empty()) {
    Admit();
  } else {
    const auto at = std::next(live_.begin(), Pick(0, static_cast<int64_t>(live_.size()) - 1));
    if (choice < 40 && at->second.computed < at->second.prompt) {
      Adopt(at->first, &at->second);
    } else if (choice < 92) {
      Compute(at->first, &at->second);
    } else {
      const bool failed = Chance(20);
      if (failed) {
        exact_ = false;
        failed_[at->second.number] = now_;
      }
      kv_->Release(at->first, failed);
      live_.erase(at);
    }
  }
  if (!testing::Test::HasFatalFailure()) CheckTotals();
}

TEST(KvManagerProperty, AgreesWithANaiveModel) {
  uint64_t adopted = 0;
  uint64_t waits = 0;
  uint64_t evictions = 0;
  for (uint64_t seed = 0; seed < 250; ++seed) {
    Operations run(seed);
    for (int n = 0; n < 400; ++n) {
      run.Operate();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << " operation " << n;
    }
    adopted += run.adopted();
    waits += run.waits();
    evictions += run.evictions();
  }
  // The operations reach what they are meant to reach.
  EXPECT_GT(adopted, 10000u);
  EXPECT_GT(waits, 200u);
  EXPECT_GT(evictions, 5000u);
}

}  // namespace
}  // namespace lockstep
