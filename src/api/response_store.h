// ResponseStore: answers of the responses API, kept for a while so that a later request can ask for
// one or go on from it. In memory, within a number of bytes; the one longest not used goes first.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace lockstep {

struct StoredResponse {
  std::string id;
  std::string owner;     // the API key that made it: to others it is not there
  std::string response;  // the answer's JSON
  std::string items;     // the JSON array of what it answers, the conversation before included
};

struct ResponseStoreOptions {
  size_t max_bytes = size_t{64} << 20;                // of texts and bookkeeping
  std::chrono::seconds ttl = std::chrono::hours(24);  // from when it was made
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

class ResponseStore {
 public:
  explicit ResponseStore(ResponseStoreOptions options) : options_(std::move(options)) {}

  ResponseStore(const ResponseStore&) = delete;
  ResponseStore& operator=(const ResponseStore&) = delete;

  // Whether it may be kept at all.
  bool Fits(const StoredResponse& response) const { return Bytes(response) <= options_.max_bytes; }
  // REQUIRES: Fits(response), and the id is new.
  void Put(StoredResponse response);
  // Null: there is none, or no longer.
  std::shared_ptr<const StoredResponse> Find(std::string_view id, std::string_view owner);
  // False: there was none.
  bool Erase(std::string_view id, std::string_view owner);

  size_t bytes() const;
  size_t size() const;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Entry {
    std::shared_ptr<const StoredResponse> response;
    TimePoint made;
    std::list<std::string>::iterator use;  // in by_use_
  };
  using ByAge = std::list<Entry>;

  static size_t Bytes(const StoredResponse& response);
  ByAge::iterator FindLive(std::string_view id, std::string_view owner);
  void Remove(ByAge::iterator entry);
  void RemoveExpired();

  const ResponseStoreOptions options_;
  mutable std::mutex mutex_;
  ByAge by_age_;                   // the oldest first
  std::list<std::string> by_use_;  // ids, the one longest not used first
  std::unordered_map<std::string, ByAge::iterator> by_id_;
  size_t bytes_ = 0;
};

}  // namespace lockstep
