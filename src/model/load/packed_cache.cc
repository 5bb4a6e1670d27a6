#include "model/load/packed_cache.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "kernels/generic/gemm_layout.h"
#include "model/load/chunked_hash.h"
#include "model/load/load_progress.h"
#include "model/load/packed_cache_format.h"
#include "weights/byte_cursor.h"

namespace lockstep {
namespace {

using kernels::PackedMatrix;
using kernels::WeightCode;
using packed_cache::Header;
using packed_cache::MatrixRecord;

constexpr int32_t kMaxDimension = 1 << 28;

Status Unusable(const char* why) { return DataLoss(why); }

// The matrix that `record` describes, without its bytes; an error when no packed matrix can be so.
Result<PackedMatrix> Described(const MatrixRecord& record) {
  const bool known_code = record.code >= 0 && record.code <= static_cast<int32_t>(WeightCode::kF16);
  if (!known_code || record.n < 1 || record.n > kMaxDimension || record.k < 1 ||
      record.k > kMaxDimension) {
    return Unusable("a matrix that cannot be");
  }
  PackedMatrix matrix;
  matrix.code = static_cast<WeightCode>(record.code);
  matrix.n = record.n;
  matrix.k = record.k;
  if (kernels::IsIntegerCode(matrix.code)) {
    const bool possible =
        record.group == 32 || (record.group == 16 && matrix.code == WeightCode::kI8);
    if (!possible || record.k % record.group != 0 || record.zero < 0 || record.zero > 15) {
      return Unusable("a matrix whose groups cannot be");
    }
    matrix.group = record.group;
    matrix.zero = record.zero;
    matrix.has_min = record.has_min != 0;
    matrix.f32_scales = record.f32_scales != 0;
  }
  matrix.panel_bytes = kernels::PanelBytes(matrix);
  if (record.panel_bytes != matrix.panel_bytes ||
      record.bytes != matrix.panel_bytes * matrix.panels()) {
    return Unusable("a matrix of another size than its shape's");
  }
  return matrix;
}

bool ReadName(ByteCursor* cursor, std::string* name) {
  std::string_view text;
  if (!cursor->ReadString(text)) return false;
  *name = text;
  return true;
}

}  // namespace

std::string PackedCachePath(const std::string& folder, const CheckpointIdentity& identity) {
  return fmt::format("{}/{:016x}{:016x}.lspacked", folder, identity[0], identity[1]);
}

Result<std::shared_ptr<const PackedCache>> PackedCache::Open(const std::string& path,
                                                             const CheckpointIdentity& identity,
                                                             ThreadPool* pool) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  const std::shared_ptr<PackedCache> cache(new PackedCache(std::move(map)));
  LOCKSTEP_RETURN_IF_ERROR(cache->Parse(identity, pool).WithContext(path));
  return std::shared_ptr<const PackedCache>(cache);
}

Status PackedCache::Parse(const CheckpointIdentity& identity, ThreadPool* pool) {
  const auto bytes = map_.bytes();
  ByteCursor cursor(bytes);
  Header header;
  if (!cursor.Read(header) || std::memcmp(header.magic, packed_cache::kMagic, 8) != 0) {
    return Unusable("is no file of packed weights");
  }
  if (header.version != packed_cache::kVersion) return Unusable("is of another version");
  if (header.header_hash != XXH3_64bits(&header, offsetof(Header, header_hash))) {
    return Unusable("its header is corrupt");
  }
  if (!std::ranges::equal(header.identity, identity)) return Unusable("is another checkpoint's");
  if (header.table_offset > bytes.size() ||
      bytes.size() - header.table_offset != header.table_bytes) {
    return Unusable("is torn");
  }
  const auto table = bytes.subspan(header.table_offset);
  if (XXH3_64bits(table.data(), table.size()) != header.table_hash) {
    return Unusable("its table is corrupt");
  }
  return ParseTable(table, header.table_offset, pool);
}

Status PackedCache::ParseTable(std::span<const std::byte> table, uint64_t table_offset,
                               ThreadPool* pool) {
  const Status broken = Unusable("its table cannot be read");
  LoadProgress progress("packed weights", table_offset);
  ByteCursor cursor(table);
  uint32_t count = 0;
  if (!cursor.Read(count)) return broken;
  for (uint32_t i = 0; i < count; ++i) {
    std::string name;
    uint64_t hash = 0;
    if (!ReadName(&cursor, &name) || !cursor.Read(hash)) return broken;
    tensor_hashes_.emplace(std::move(name), hash);
  }
  if (!cursor.Read(count)) return broken;
  for (uint32_t i = 0; i < count; ++i) {
    std::string key;
    MatrixRecord record;
    if (!ReadName(&cursor, &key) || !cursor.Read(record)) return broken;
    LOCKSTEP_ASSIGN_OR_RETURN(PackedMatrix matrix, Described(record));
    if (record.offset % packed_cache::kAlignment != 0 || record.offset > table_offset ||
        record.bytes > table_offset - record.offset) {
      return Unusable("a matrix that is not in the file");
    }
    const auto data = map_.bytes().subspan(record.offset, record.bytes);
    map_.Advise(MappedFile::Advice::kWillNeed, record.offset, record.bytes);
    const uint64_t hash = HashOf(data, pool);
    progress.Add(data.size());
    if (hash != record.hash) return Unusable("a matrix is corrupt");
    matrix.data = data.data();
    matrices_.emplace(std::move(key), matrix);
  }
  return cursor.remaining() == 0 ? OkStatus() : broken;
}

const PackedMatrix* PackedCache::Find(const std::string& key) const {
  const auto found = matrices_.find(key);
  return found == matrices_.end() ? nullptr : &found->second;
}

std::optional<uint64_t> PackedCache::TensorHash(const std::string& name) const {
  const auto found = tensor_hashes_.find(name);
  if (found == tensor_hashes_.end()) return std::nullopt;
  return found->second;
}

}  // namespace lockstep
