#include "executor/fake/fake_executor.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/philox.h"

namespace lockstep {
namespace {

// The finaliser of splitmix64 (Steele et al., "Fast splittable pseudorandom number generators").
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// A made-up distribution that depends on nothing but `hash`.
PositionLogprobs FakeLogprobs(uint64_t hash, TokenId token, int32_t top, int32_t vocab_size) {
  PositionLogprobs made;
  made.token = token;
  if (token >= 0) {
    made.logprob = -static_cast<float>(Mix(hash ^ static_cast<uint32_t>(token)) >> 40) * 0x1p-20f;
  }
  for (int32_t i = 0; i < top; ++i) {
    const uint64_t value = Mix(hash + static_cast<uint64_t>(i));
    made.top.push_back(
        {static_cast<TokenId>(value % static_cast<uint64_t>(vocab_size)), -static_cast<float>(i)});
  }
  return made;
}

constexpr uint64_t kNeverWritten = 1;
constexpr uint64_t kRubbish = 2;

bool HasStates(const CacheGroupSpec& spec) { return spec.kind == CacheKind::kRecurrent; }

// Whether the computation of position p reads what is stored for q <= p.
bool Reads(const CacheGroupSpec& spec, int32_t p, int32_t q) {
  return spec.kind != CacheKind::kWindow || q > p - spec.window || q < spec.sinks;
}

bool Masked(const StepRow& row, TokenId token) {
  const auto t = static_cast<size_t>(token);
  return !row.mask.empty() && (row.mask[t / 32] >> (t % 32) & 1) == 0;
}

}  // namespace

FakeExecutor::FakeExecutor(FakeOptions options) : options_(std::move(options)) {
  info_.architecture = "fake";
  info_.fingerprint = "fake";
  info_.vocab_size = options_.vocab_size;
  info_.max_context = options_.max_context;
  info_.max_step_tokens = options_.max_step_tokens;
  info_.max_step_rows = options_.max_step_rows;
  info_.cache_groups = options_.cache_groups;
  info_.cache_identity = "fake";
}

Status FakeExecutor::AllocateCache(const std::vector<int32_t>& blocks) {
  LOCKSTEP_CHECK(storage_.empty() && blocks.size() == info_.cache_groups.size());
  for (size_t g = 0; g < blocks.size(); ++g) {
    const CacheGroupSpec& spec = info_.cache_groups[g];
    const auto in_block = static_cast<size_t>(HasStates(spec) ? 1 : spec.block_tokens);
    storage_.emplace_back(static_cast<size_t>(blocks[g]) * in_block, kNeverWritten);
  }
  return OkStatus();
}

Status FakeExecutor::Step(const StepInput& input, StepOutput* output) {
  CheckContract(input);
  const int64_t n = steps_++;
  // Until the end of the call, as a step that was broken off may have left it.
  for (const StepRow& row : input.rows) Write(row, true);
  if (options_.before_step) LOCKSTEP_RETURN_IF_ERROR(options_.before_step(n, input));
  for (const StepRow& row : input.rows) Write(row, false);
  if (input.await_masks) input.await_masks();

  output->rows.assign(input.rows.size(), {});
  for (size_t i = 0; i < input.rows.size(); ++i) {
    const StepRow& row = input.rows[i];
    RowOutput& out = output->rows[i];
    if (options_.row_status) out.status = options_.row_status(n, row);
    if (!out.status.ok()) continue;
    if (row.sampling != nullptr) out.token = Sample(row);
    FillLogprobs(row, &out);
  }
  return OkStatus();
}

std::span<std::byte> FakeExecutor::BlockBytes(int32_t group, BlockId block) {
  const CacheGroupSpec& spec = info_.cache_groups[static_cast<size_t>(group)];
  const auto in_block = static_cast<size_t>(HasStates(spec) ? 1 : spec.block_tokens);
  auto& stored = storage_[static_cast<size_t>(group)];
  const size_t begin = static_cast<size_t>(block) * in_block;
  LOCKSTEP_CHECK(begin + in_block <= stored.size());
  LOCKSTEP_CHECK(static_cast<int64_t>(in_block * sizeof(uint64_t)) <= spec.block_bytes);
  return std::as_writable_bytes(std::span(stored).subspan(begin, in_block));
}

Status FakeExecutor::ExportBlocks(int32_t group, std::span<const BlockId> blocks,
                                  std::span<std::byte> bytes) {
  const auto size = static_cast<size_t>(info_.cache_groups[static_cast<size_t>(group)].block_bytes);
  LOCKSTEP_CHECK(bytes.size() == blocks.size() * size);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::ranges::copy(BlockBytes(group, blocks[i]), bytes.subspan(i * size).begin());
  }
  return OkStatus();
}

Status FakeExecutor::ImportBlocks(int32_t group, std::span<const BlockId> blocks,
                                  std::span<const std::byte> bytes) {
  const auto size = static_cast<size_t>(info_.cache_groups[static_cast<size_t>(group)].block_bytes);
  LOCKSTEP_CHECK(bytes.size() == blocks.size() * size);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto block = BlockBytes(group, blocks[i]);
    std::ranges::copy(bytes.subspan(i * size, block.size()), block.begin());
  }
  return OkStatus();
}

void FakeExecutor::CheckContract(const StepInput& input) const {
  LOCKSTEP_CHECK(!input.rows.empty());
  LOCKSTEP_CHECK(static_cast<int32_t>(input.rows.size()) <= info_.max_step_rows);
  int32_t tokens = 0;
  std::map<std::pair<size_t, BlockId>, int> rows_with;  // a block in their tables
  for (const StepRow& row : input.rows) {
    const int32_t end = row.begin + row.count;
    tokens += row.count;
    LOCKSTEP_CHECK(row.begin >= 0 && row.count >= 1);
    LOCKSTEP_CHECK(end <= static_cast<int32_t>(row.sequence.size()));
    LOCKSTEP_CHECK(end <= info_.max_context);
    LOCKSTEP_CHECK(row.sampling == nullptr || end == static_cast<int32_t>(row.sequence.size()));
    LOCKSTEP_CHECK(row.block_tables.size() == storage_.size());
    LOCKSTEP_CHECK(std::is_sorted(row.banned.begin(), row.banned.end()));
    for (size_t g = 0; g < storage_.size(); ++g) {
      const CacheGroupSpec& spec = info_.cache_groups[g];
      const int32_t size = HasStates(spec) ? 1 : spec.block_tokens;
      const auto table = row.block_tables[g];
      const int32_t entries = HasStates(spec) ? 2 : (end + size - 1) / size;
      LOCKSTEP_CHECK(static_cast<int32_t>(table.size()) == entries);
      LOCKSTEP_CHECK(!HasStates(spec) || (table[0] == kNoBlock) == (row.begin == 0));
      for (const BlockId id : table) {
        if (id == kNoBlock) continue;
        LOCKSTEP_CHECK(id >= 0 && static_cast<size_t>(id + 1) * size <= storage_[g].size());
        ++rows_with[{g, id}];
      }
    }
  }
  LOCKSTEP_CHECK(tokens <= info_.max_step_tokens);
  // What is written belongs to one row.
  for (const StepRow& row : input.rows) {
    for (size_t g = 0; g < storage_.size(); ++g) {
      const CacheGroupSpec& spec = info_.cache_groups[g];
      const auto table = row.block_tables[g];
      const int32_t first = HasStates(spec) ? 1 : row.begin / spec.block_tokens;
      for (const BlockId id : table.subspan(static_cast<size_t>(first))) {
        LOCKSTEP_CHECK(id != kNoBlock && (rows_with[{g, id}] == 1));
      }
    }
  }
}

uint64_t FakeExecutor::Stored(size_t group, const StepRow& row, int32_t p) const {
  return const_cast<FakeExecutor*>(this)->Stored(group, row, p);
}

uint64_t& FakeExecutor::Stored(size_t group, const StepRow& row, int32_t p) {
  const int32_t size = info_.cache_groups[group].block_tokens;
  const BlockId block = row.block_tables[group][static_cast<size_t>(p / size)];
  LOCKSTEP_CHECK(block != kNoBlock);
  return storage_[group][static_cast<size_t>(block) * static_cast<size_t>(size) +
                         static_cast<size_t>(p % size)];
}

uint64_t FakeExecutor::StateAfter(size_t group, const StepRow& row, int32_t end) const {
  const BlockId read = row.block_tables[group][0];
  uint64_t state = read == kNoBlock ? 0 : storage_[group][static_cast<size_t>(read)];
  for (int32_t p = row.begin; p < end; ++p) {
    state = Mix(state ^ static_cast<uint32_t>(row.sequence[static_cast<size_t>(p)]));
  }
  return state;
}

void FakeExecutor::Write(const StepRow& row, bool rubbish) {
  const int32_t end = row.begin + row.count;
  for (size_t g = 0; g < storage_.size(); ++g) {
    const CacheGroupSpec& spec = info_.cache_groups[g];
    if (HasStates(spec)) {
      const auto written = static_cast<size_t>(row.block_tables[g][1]);
      storage_[g][written] = rubbish ? kRubbish : StateAfter(g, row, end);
      continue;
    }
    for (int32_t p = row.begin; p < end; ++p) {
      const uint64_t before = p > 0 && Reads(spec, p, p - 1) ? Stored(g, row, p - 1) : 0;
      const auto token = static_cast<uint32_t>(row.sequence[static_cast<size_t>(p)]);
      Stored(g, row, p) = rubbish ? kRubbish : Mix(before ^ token);
    }
  }
}

uint64_t FakeExecutor::HashOf(const StepRow& row, int32_t end) const {
  uint64_t hash = 0;
  for (size_t g = 0; g < storage_.size(); ++g) {
    const CacheGroupSpec& spec = info_.cache_groups[g];
    if (HasStates(spec)) {
      hash = Mix(hash ^ StateAfter(g, row, end));
      continue;
    }
    for (int32_t p = 0; p < end; ++p) {
      if (Reads(spec, end - 1, p)) hash = Mix(hash ^ Stored(g, row, p));
    }
  }
  return hash;
}

TokenId FakeExecutor::Sample(const StepRow& row) const {
  const int32_t end = row.begin + row.count;
  uint64_t hash = HashOf(row, end);
  if (row.sampling->temperature > 0) {
    const double draw =
        PhiloxUniform(row.sampling->seed, row.sampling->stream, static_cast<uint64_t>(end));
    hash = Mix(hash ^ static_cast<uint64_t>(draw * 0x1p53));
  }
  TokenId token = 0;
  do {
    token = static_cast<TokenId>(hash % static_cast<uint64_t>(info_.vocab_size));
    hash = Mix(hash);
  } while (std::binary_search(row.banned.begin(), row.banned.end(), token) || Masked(row, token));
  return token;
}

void FakeExecutor::FillLogprobs(const StepRow& row, RowOutput* output) const {
  const int32_t end = row.begin + row.count;
  if (row.sampling != nullptr && row.sampling->logprobs >= 0) {
    output->logprobs =
        FakeLogprobs(HashOf(row, end), output->token, row.sampling->logprobs, info_.vocab_size);
  }
  if (row.prompt_logprobs < 0) return;
  for (int32_t p = row.begin; p < end; ++p) {
    const auto next = static_cast<size_t>(p) + 1;
    output->prompt.push_back(FakeLogprobs(HashOf(row, p + 1),
                                          next < row.sequence.size() ? row.sequence[next] : -1,
                                          row.prompt_logprobs, info_.vocab_size));
  }
}

}  // namespace lockstep
