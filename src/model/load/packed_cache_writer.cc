#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "model/load/chunked_hash.h"
#include "model/load/packed_cache.h"
#include "model/load/packed_cache_format.h"

namespace lockstep {
namespace {

using packed_cache::Header;
using packed_cache::MatrixRecord;

template <typename T>
void Append(std::vector<std::byte>* out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out->insert(out->end(), bytes, bytes + sizeof(T));
}

void AppendName(std::vector<std::byte>* out, const std::string& name) {
  Append(out, uint64_t{name.size()});
  const auto* bytes = reinterpret_cast<const std::byte*>(name.data());
  out->insert(out->end(), bytes, bytes + name.size());
}

uint64_t Aligned(uint64_t offset) {
  return (offset + packed_cache::kAlignment - 1) / packed_cache::kAlignment *
         packed_cache::kAlignment;
}

}  // namespace

Result<std::unique_ptr<PackedCacheWriter>> PackedCacheWriter::Create(
    const std::string& path, const CheckpointIdentity& identity) {
  LOCKSTEP_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  std::unique_ptr<PackedCacheWriter> writer(new PackedCacheWriter(std::move(file), identity));
  writer->end_ = packed_cache::kAlignment;
  return writer;
}

Status PackedCacheWriter::Add(const std::string& key, const kernels::PackedMatrix& matrix,
                              ThreadPool* pool) {
  const std::span<const std::byte> data(matrix.data, matrix.panel_bytes * matrix.panels());
  const uint64_t hash = HashOf(data, pool);
  const uint64_t offset = Aligned(end_);
  LOCKSTEP_RETURN_IF_ERROR(file_.WriteAt(offset, data));
  end_ = offset + data.size();
  entries_.push_back({key, matrix, offset, hash});
  return OkStatus();
}

void PackedCacheWriter::AddTensorHash(std::string name, uint64_t hash) {
  tensor_hashes_.emplace_back(std::move(name), hash);
}

Status PackedCacheWriter::Commit() {
  std::vector<std::byte> table;
  Append(&table, static_cast<uint32_t>(tensor_hashes_.size()));
  for (const auto& [name, hash] : tensor_hashes_) {
    AppendName(&table, name);
    Append(&table, hash);
  }
  Append(&table, static_cast<uint32_t>(entries_.size()));
  for (const Entry& entry : entries_) {
    const kernels::PackedMatrix& m = entry.matrix;
    AppendName(&table, entry.key);
    Append(&table, MatrixRecord{static_cast<int32_t>(m.code), m.n, m.k, m.group, m.zero, m.has_min,
                                m.f32_scales, 0, m.panel_bytes, entry.offset,
                                m.panel_bytes * m.panels(), entry.hash});
  }
  Header header{};
  std::memcpy(header.magic, packed_cache::kMagic, sizeof(header.magic));
  header.version = packed_cache::kVersion;
  std::copy(identity_.begin(), identity_.end(), header.identity);
  header.table_offset = Aligned(end_);
  header.table_bytes = table.size();
  header.table_hash = XXH3_64bits(table.data(), table.size());
  header.header_hash = XXH3_64bits(&header, offsetof(Header, header_hash));
  LOCKSTEP_RETURN_IF_ERROR(file_.WriteAt(header.table_offset, table));
  LOCKSTEP_RETURN_IF_ERROR(file_.WriteAt(0, std::as_bytes(std::span(&header, 1))));
  return file_.Commit();
}

}  // namespace lockstep
