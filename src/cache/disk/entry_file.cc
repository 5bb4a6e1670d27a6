#include "cache/disk/entry_file.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "platform/system_error.h"

namespace lockstep {
namespace {

constexpr char kMagic[8] = {'L', 'S', 'P', 'R', 'E', 'F', 'I', 'X'};
constexpr size_t kNodeDigits = 32;

template <typename T>
void Put(EntryHeader* header, size_t offset, const T& value) {
  std::memcpy(header->data() + offset, &value, sizeof(value));
}

EntryHeader HeaderOf(const PrefixKey& key, uint64_t bytes, const ChainDigest& identity,
                     const ChainDigest& parent) {
  EntryHeader header;
  Put(&header, 0, kMagic);
  Put(&header, 8, kEntryVersion);
  Put(&header, 12, key.group);
  Put(&header, 16, bytes);
  Put(&header, 24, identity);
  Put(&header, 56, key.digest);
  Put(&header, 88, parent);
  return header;
}

template <typename T>
bool ParseHex(std::string_view digits, T* value) {
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, *value, 16);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

bool ParseNode(std::string_view digits, NodeName* node) {
  return digits.size() == kNodeDigits && ParseHex(digits.substr(0, 16), &(*node)[0]) &&
         ParseHex(digits.substr(16), &(*node)[1]);
}

// A file open for reading.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    if (fd_ >= 0) close(fd_);
  }

  // Errors: kDataLoss when it is no regular file of this size.
  Status CheckSize(int64_t bytes) const {
    struct stat status;
    if (fd_ < 0 || fstat(fd_, &status) != 0) return SystemError(path_, errno);
    if (S_ISREG(status.st_mode) && status.st_size == bytes) return OkStatus();
    return DataLoss(fmt::format("{}: has {} bytes, not {}", path_, status.st_size, bytes));
  }
  Status Read(int64_t offset, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = pread(fd_, bytes.data(), bytes.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemError(path_, errno);
      if (count == 0) return DataLoss(path_ + ": is torn");
      bytes = bytes.subspan(static_cast<size_t>(count));
      offset += count;
    }
    return OkStatus();
  }
  // So that after a restart those that were not used for longest go first. Best effort.
  void Touch() const { futimens(fd_, nullptr); }

 private:
  const std::string& path_;
  const int fd_;
};

}  // namespace

NodeName NameOf(const ChainDigest& digest) {
  NodeName name;
  static_assert(sizeof(name) <= sizeof(digest));
  std::memcpy(name.data(), digest.data(), sizeof(name));
  return name;
}

std::string FileNameOf(const EntryName& name) {
  return fmt::format("{:016x}{:016x}-{:016x}{:016x}-{:x}{}", name.node[0], name.node[1],
                     name.parent[0], name.parent[1], name.group, kEntrySuffix);
}

std::optional<EntryName> ParseFileName(std::string_view file_name) {
  if (!file_name.ends_with(kEntrySuffix)) return std::nullopt;
  const std::string_view stem = file_name.substr(0, file_name.size() - kEntrySuffix.size());
  constexpr size_t kGroupAt = 2 * kNodeDigits + 2;
  EntryName name;
  if (stem.size() <= kGroupAt || !ParseNode(stem.substr(0, kNodeDigits), &name.node) ||
      !ParseNode(stem.substr(kNodeDigits + 1, kNodeDigits), &name.parent) ||
      !ParseHex(stem.substr(kGroupAt), &name.group)) {
    return std::nullopt;
  }
  // One spelling alone, so that a name and a file are one to one.
  if (name.group < 0 || FileNameOf(name) != file_name) return std::nullopt;
  return name;
}

EntryHeader HeaderOf(const PrefixEntry& entry, const ChainDigest& identity) {
  return HeaderOf(entry.key, entry.bytes.size, identity, entry.parent);
}

EntrySum SumOf(const EntryHeader& header, std::span<const std::byte> blocks) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, header.data(), header.size());
  XXH3_128bits_update(&state, blocks.data(), blocks.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
  EntrySum sum;
  static_assert(sizeof(canonical) == sizeof(sum));
  std::memcpy(sum.data(), &canonical, sizeof(sum));
  return sum;
}

Result<PrefixBytes> ReadEntryFile(const std::string& path, const PrefixKey& key,
                                  const ChainDigest& identity, int64_t block_bytes) {
  const Reader file(path);
  LOCKSTEP_RETURN_IF_ERROR(file.CheckSize(EntryFileBytes(block_bytes)));
  EntryHeader header;
  PrefixBytes blocks(static_cast<size_t>(block_bytes));
  EntrySum sum;
  LOCKSTEP_RETURN_IF_ERROR(file.Read(0, header));
  LOCKSTEP_RETURN_IF_ERROR(file.Read(kEntryHeaderBytes, blocks.span()));
  LOCKSTEP_RETURN_IF_ERROR(file.Read(kEntryHeaderBytes + block_bytes, sum));
  if (SumOf(header, blocks.span()) != sum) return DataLoss(path + ": its checksum is wrong");
  // Its digest stands for the tokens before it too, so any parent is the right one.
  ChainDigest parent;
  std::memcpy(parent.data(), header.data() + 88, sizeof(parent));
  if (header != HeaderOf(key, blocks.size, identity, parent)) {
    return DataLoss(path + ": is another entry, model or version");
  }
  file.Touch();
  return blocks;
}

}  // namespace lockstep
