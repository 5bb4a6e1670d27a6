#include "engine/prefix_transfer.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/quietly.h"

namespace lockstep {
namespace {

// Copied between two steps, each way: a few milliseconds of memory traffic.
constexpr int64_t kTurnBytes = int64_t{16} << 20;

}  // namespace

PrefixTransfer::PrefixTransfer(Executor* executor, KvManager* kv,
                               std::shared_ptr<PrefixStore> store)
    : executor_(executor), kv_(kv), store_(std::move(store)) {}

int64_t PrefixTransfer::BytesOf(const KvManager::SpanPart& part) const {
  const CacheGroupSpec& group = executor_->info().cache_groups[static_cast<size_t>(part.group)];
  return static_cast<int64_t>(part.blocks.size()) * group.block_bytes;
}

bool PrefixTransfer::Begin(Sequence* sequence) {
  if (sequence->asked_store()) return false;
  sequence->set_asked_store(true);
  if (sequence->adoptable() == 0) return false;
  const int32_t before = sequence->computed();
  try {
    if (TryBegin(sequence)) return true;
  } catch (const std::bad_alloc&) {
    // Then it is computed; what was taken for it is given back with the rest.
    GiveUp(sequence);
    sequence->set_asked_store(true);
    return false;
  }
  if (sequence->computed() == before) ++stats_.misses;
  return false;
}

bool PrefixTransfer::TryBegin(Sequence* sequence) {
  const CacheSlot slot = sequence->slot();
  const auto digests = kv_->SpansToCome(slot, sequence->tokens(), sequence->adoptable());
  if (digests.empty()) return false;
  const int64_t end = kv_->Restorable(slot, store_->Find(digests, /*used=*/false));
  if (end <= sequence->computed()) return false;
  const uint64_t ticket = ++last_ticket_;
  Restore& restore = restores_[sequence];
  restore.ticket = ticket;
  restore.end = end;
  by_ticket_[ticket] = sequence;
  std::vector<PrefixKey> keys;
  std::vector<int64_t> bytes;
  restore.parts = kv_->BeginRestore(slot, end, digests);
  for (const KvManager::SpanPart& part : restore.parts) {
    keys.push_back({part.digest, part.group});
    bytes.push_back(BytesOf(part));
  }
  store_->Find(digests, /*used=*/true);
  if (restore.parts.empty()) {
    // A window of one position reads nothing before it.
    Finish(sequence, end);
    return false;
  }
  store_->Read(ticket, std::move(keys), std::move(bytes));
  sequence->set_loading(true);
  return true;
}

bool PrefixTransfer::TakeIn(int32_t* adopted) {
  const bool more = FillIn();
  *adopted += std::exchange(adopted_, 0);
  return more;
}

bool PrefixTransfer::FillIn() {
  int64_t copied = 0;
  while (!restores_.empty()) {
    if (copied >= kTurnBytes) return true;
    std::optional<PrefixRead> read = store_->NextRead();
    if (!read) return false;
    const auto found = by_ticket_.find(read->ticket);
    if (found == by_ticket_.end()) continue;
    Sequence* const sequence = found->second;
    Restore& restore = restores_.at(sequence);
    LOCKSTEP_CHECK(read->index == restore.filled);
    const KvManager::SpanPart& part = restore.parts[restore.filled++];
    copied += BytesOf(part);
    if (!read->bytes || !Fill(part, read->bytes->span()).ok()) {
      ++stats_.failures;
      GiveUp(sequence);
      // Where the store has lost a part it is asked what it has of the rest.
      sequence->set_asked_store(read->bytes.has_value());
      continue;
    }
    if (restore.filled < restore.parts.size()) continue;
    Finish(sequence, restore.end);
  }
  return false;
}

void PrefixTransfer::Finish(Sequence* sequence, int64_t end) {
  Forget(sequence);
  kv_->FinishRestore(sequence->slot(),
                     std::span(sequence->tokens()).first(static_cast<size_t>(end)));
  stats_.tokens += static_cast<uint64_t>(end - sequence->computed());
  ++stats_.hits;
  adopted_ += sequence->Adopt(static_cast<int32_t>(end));
  sequence->set_loading(false);
}

// Of a window a sequence may need only the end of a span.
Status PrefixTransfer::Fill(const KvManager::SpanPart& part, std::span<const std::byte> bytes) {
  const size_t size = bytes.size() / part.blocks.size();
  for (size_t i = 0; i < part.blocks.size(); ++i) {
    if (part.blocks[i] == kNoBlock) continue;
    const Status status = executor_->ImportBlocks(part.group, std::span(part.blocks).subspan(i, 1),
                                                  bytes.subspan(i * size, size));
    if (status.ok()) continue;
    Quietly([&] { LogWarning("a prefix cannot be restored: {}", status.ToString()); });
    return status;
  }
  return OkStatus();
}

void PrefixTransfer::GiveUp(Sequence* sequence) {
  Forget(sequence);
  kv_->GiveUpRestore(sequence->slot());
  sequence->StartOver();
  sequence->set_loading(false);
}

void PrefixTransfer::Forget(const Sequence* sequence) {
  const auto found = restores_.find(const_cast<Sequence*>(sequence));
  if (found == restores_.end()) return;
  store_->CancelRead(found->second.ticket);
  by_ticket_.erase(found->second.ticket);
  restores_.erase(found);
}

bool PrefixTransfer::HandOver() {
  for (const ChainDigest& digest : kv_->TakeBanned()) store_->Remove(digest);
  int64_t copied = 0;
  try {
    while (true) {
      if (copied >= kTurnBytes) return true;
      const auto parts = kv_->NextToSave();
      if (parts.empty()) return false;
      const uint64_t there = store_->Find(std::span(&parts.front().digest, 1), /*used=*/true)[0];
      for (const KvManager::SpanPart& part : parts) {
        if ((there >> part.group & 1) != 0) continue;
        // The store wakes the engine when it has room again.
        if (!store_->HasRoom(BytesOf(part))) return false;
        const Status status = CopyOut(part);
        if (!status.ok()) {
          // What cannot be copied out now will not be asked for again and again.
          Quietly([&] { LogWarning("a prefix cannot be kept: {}", status.ToString()); });
          break;
        }
        copied += BytesOf(part);
      }
      kv_->Saved();
    }
  } catch (const std::bad_alloc&) {
    return false;  // it is tried again after the next step
  }
}

Status PrefixTransfer::CopyOut(const KvManager::SpanPart& part) {
  PrefixEntry entry;
  entry.key = {part.digest, part.group};
  entry.parent = part.parent;
  entry.bytes = PrefixBytes(static_cast<size_t>(BytesOf(part)));
  LOCKSTEP_RETURN_IF_ERROR(executor_->ExportBlocks(part.group, part.blocks, entry.bytes.span()));
  store_->Write(std::move(entry));
  return OkStatus();
}

}  // namespace lockstep
