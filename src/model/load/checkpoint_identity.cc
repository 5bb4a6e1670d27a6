// Reading a whole checkpoint only to know it would cost what the cache saves. Size and time of its
// files tell one from another wherever files are replaced as they should be; samples of the bytes
// tell them apart where times were copied too, as between two trainings of one model.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/load/packed_cache.h"

namespace lockstep {
namespace {

constexpr uint64_t kHeadBytes = 64 << 10;
constexpr uint64_t kSamples = 64;
constexpr uint64_t kSampleBytes = 4 << 10;

class Hasher {
 public:
  Hasher() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  ~Hasher() { XXH3_freeState(state_); }

  void Add(std::span<const std::byte> bytes) {
    XXH3_128bits_update(state_, bytes.data(), bytes.size());
  }
  void Add(uint64_t number) { Add(std::as_bytes(std::span(&number, 1))); }
  void Add(std::string_view text) {
    Add(text.size());
    Add(std::as_bytes(std::span(text)));
  }
  CheckpointIdentity Value() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_);
    return {hash.high64, hash.low64};
  }

 private:
  XXH3_state_t* state_;
};

void AddConfig(const HfConfig& config, Hasher* hasher) {
  using Json = nlohmann::json;
  hasher->Add(config.json().dump(-1, ' ', false, Json::error_handler_t::replace));
}

void AddFile(const MappedFile& file, Hasher* hasher) {
  std::error_code ignored;  // a file without a time is told by its bytes
  const auto time = std::filesystem::last_write_time(file.path(), ignored);
  hasher->Add(file.size());
  hasher->Add(static_cast<uint64_t>(time.time_since_epoch().count()));
  const auto add = [&](uint64_t offset, uint64_t length) {
    hasher->Add(file.bytes().subspan(offset, std::min(length, file.size() - offset)));
  };
  add(0, kHeadBytes);
  for (uint64_t sample = 1; sample <= kSamples; ++sample) {
    const uint64_t end = file.size() / kSamples * sample;
    add(end - std::min(end, kSampleBytes), kSampleBytes);
  }
  file.Advise(MappedFile::Advice::kDontNeed);  // a sample may have brought in a huge page
}

}  // namespace

CheckpointIdentity IdentityOf(const Checkpoint& checkpoint, std::string_view variant) {
  Hasher hasher;
  hasher.Add(variant);
  if (checkpoint.config() != nullptr) AddConfig(*checkpoint.config(), &hasher);
  for (const MappedFile* file : checkpoint.files()) AddFile(*file, &hasher);
  return hasher.Value();
}

uint64_t ConfigHash(const Checkpoint& checkpoint) {
  Hasher hasher;
  if (checkpoint.config() != nullptr) AddConfig(*checkpoint.config(), &hasher);
  if (checkpoint.gguf() != nullptr) {
    for (const GgufEntry& entry : checkpoint.gguf()->metadata().entries()) {
      if (entry.key.starts_with("tokenizer.")) continue;
      hasher.Add(entry.key);
      hasher.Add(static_cast<uint64_t>(entry.type));
      hasher.Add(entry.raw.size());
      hasher.Add(entry.raw);
    }
  }
  return hasher.Value()[0];
}

}  // namespace lockstep
