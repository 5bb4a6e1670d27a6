#include "api/response_store.h"

#include <utility>

namespace lockstep {
namespace {

// About what an entry costs beside its texts: three nodes, two more copies of the id.
constexpr size_t kEntryBytes = 512;

}  // namespace

size_t ResponseStore::Bytes(const StoredResponse& response) {
  return kEntryBytes + response.id.size() + response.owner.size() + response.response.size() +
         response.items.size();
}

void ResponseStore::Put(StoredResponse response) {
  const std::lock_guard lock(mutex_);
  RemoveExpired();
  const size_t bytes = Bytes(response);
  while (!by_use_.empty() && bytes_ + bytes > options_.max_bytes) {
    Remove(by_id_.find(by_use_.front())->second);
  }
  Entry entry;
  entry.made = options_.now();
  entry.response = std::make_shared<const StoredResponse>(std::move(response));
  const std::string& id = entry.response->id;
  entry.use = by_use_.insert(by_use_.end(), id);
  by_id_.emplace(id, by_age_.insert(by_age_.end(), entry));
  bytes_ += bytes;
}

std::shared_ptr<const StoredResponse> ResponseStore::Find(std::string_view id,
                                                          std::string_view owner) {
  const std::lock_guard lock(mutex_);
  const auto entry = FindLive(id, owner);
  if (entry == by_age_.end()) return nullptr;
  by_use_.splice(by_use_.end(), by_use_, entry->use);
  return entry->response;
}

bool ResponseStore::Erase(std::string_view id, std::string_view owner) {
  const std::lock_guard lock(mutex_);
  const auto entry = FindLive(id, owner);
  if (entry == by_age_.end()) return false;
  Remove(entry);
  return true;
}

size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

size_t ResponseStore::size() const {
  const std::lock_guard lock(mutex_);
  return by_id_.size();
}

ResponseStore::ByAge::iterator ResponseStore::FindLive(std::string_view id,
                                                       std::string_view owner) {
  RemoveExpired();
  const auto found = by_id_.find(std::string(id));
  if (found == by_id_.end() || found->second->response->owner != owner) return by_age_.end();
  return found->second;
}

void ResponseStore::Remove(ByAge::iterator entry) {
  bytes_ -= Bytes(*entry->response);
  by_use_.erase(entry->use);
  by_id_.erase(entry->response->id);
  by_age_.erase(entry);
}

void ResponseStore::RemoveExpired() {
  const TimePoint now = options_.now();
  while (!by_age_.empty() && now - by_age_.front().made >= options_.ttl) Remove(by_age_.begin());
}

}  // namespace lockstep
