#include "model/weight_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "kernels/generic/gemm_layout.h"
#include "model/layers/embedding.h"
#include "model/load/chunked_hash.h"

namespace lockstep {
namespace {

uint64_t TensorBytesOf(const Checkpoint& checkpoint) {
  uint64_t bytes = 0;
  for (const TensorView& tensor : checkpoint.tensors()) bytes += tensor.data.size();
  return bytes;
}

// All that the bytes of a packed matrix depend on, but for the checkpoint and the class.
std::string CacheKey(const std::string& name, const quant::Source& source) {
  return fmt::format("{}|{}|{}x{}|{:x}", name, source.format->name, source.n, source.k,
                     HashOf(std::as_bytes(source.rows)));
}

}  // namespace

WeightLoader::WeightLoader(std::shared_ptr<const Checkpoint> checkpoint, const LoadOptions& options)
    : checkpoint_(std::move(checkpoint)),
      options_(options),
      progress_(checkpoint_->path(), TensorBytesOf(*checkpoint_)) {}

Result<WeightLoader> WeightLoader::Create(std::shared_ptr<const Checkpoint> checkpoint,
                                          const LoadOptions& options) {
  WeightLoader loader(std::move(checkpoint), options);
  LOCKSTEP_ASSIGN_OR_RETURN(loader.storage_, StorageOf(*loader.checkpoint_));
  if (!options.packed_cache.empty() && !options.sizes_only) loader.OpenCache();
  return loader;
}

void WeightLoader::OpenCache() {
  const CheckpointIdentity identity = IdentityOf(*checkpoint_, f32() ? "f32" : "native");
  const std::string path = PackedCachePath(options_.packed_cache, identity);
  auto opened = PackedCache::Open(path, identity, options_.pool);
  if (opened.ok()) {
    cache_ = std::move(*opened);
    LogInfo("packed weights are mapped from {}", path);
    return;
  }
  if (opened.status().code() != StatusCode::kNotFound) {
    LogInfo("{}; packing anew", opened.status().message());
  }
  std::error_code ignored;  // the writer says what is wrong with the folder
  std::filesystem::create_directories(options_.packed_cache, ignored);
  auto writer = PackedCacheWriter::Create(path, identity);
  if (!writer.ok()) return LoseCache(writer.status());
  writer_ = std::move(*writer);
}

void WeightLoader::LoseCache(const Status& status) {
  LogWarning("packed weights are not kept: {}", status.message());
  writer_ = nullptr;
}

std::optional<uint64_t>& WeightLoader::Use(const TensorView& tensor) {
  const auto [at, is_new] = used_index_.emplace(&tensor, used_.size());
  if (is_new) {
    used_.push_back({&tensor, cache_ ? cache_->TensorHash(tensor.name) : std::nullopt});
  }
  return used_[at->second].hash;
}

const kernels::PackedMatrix* WeightLoader::FindPacked(const std::string& key,
                                                      const StoredMatrix& stored, bool f32) const {
  if (cache_ == nullptr) return nullptr;
  const kernels::PackedMatrix* found = cache_->Find(key);
  const quant::Source& source = stored.source;
  const bool integer = source.format->integer() && !f32;
  const bool same = found != nullptr && found->n == source.n && found->k == source.k &&
                    kernels::IsIntegerCode(found->code) == integer;
  return same ? found : nullptr;
}

Result<kernels::PackedMatrix> WeightLoader::Pack(const std::string& key, const StoredMatrix& stored,
                                                 bool f32) {
  LOCKSTEP_ASSIGN_OR_RETURN(const PackResult packed, PackMatrix(stored, f32, context()));
  for (size_t i = 0; i < stored.tensors.size(); ++i) Use(*stored.tensors[i]) = packed.hashes[i];
  if (writer_ != nullptr) {
    const Status kept = writer_->Add(key, packed.weights.matrix(), options_.pool);
    if (!kept.ok()) LoseCache(kept);
  }
  return packed.weights.matrix();
}

Result<Linear> WeightLoader::LoadLinear(const std::string& name, int32_t n, int32_t k,
                                        const LinearOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(StoredMatrix stored,
                            storage_->Find(*checkpoint_, name, n, k, options.stack));
  stored.source.rows = options.rows;
  if (options_.compute_class == ComputeClass::kInt8 && !stored.source.format->integer() &&
      !options.f32) {
    return FailedPrecondition(
        fmt::format("{}: tensor {} is {}; --compute int8 needs quantised weights",
                    checkpoint_->path(), name, stored.source.format->name),
        name);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Linear linear, Take(name, stored, f32() || options.f32));
  if (!options.bias.empty() && (options.needs_bias || Has(options.bias))) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<float> bias, LoadVector(options.bias, n));
    linear.bias.assign(PaddedOutputs(n), 0.0f);
    for (int32_t i = 0; i < n; ++i)
      linear.bias[i] = bias[options.rows.empty() ? i : options.rows[i]];
  }
  return linear;
}

Result<Linear> WeightLoader::Take(const std::string& name, const StoredMatrix& stored, bool f32) {
  for (const TensorView* tensor : stored.tensors) Use(*tensor);
  Linear linear;
  const std::string key = CacheKey(name, stored.source);
  if (const kernels::PackedMatrix* found = FindPacked(key, stored, f32)) {
    linear.matrix = *found;
    linear.memory = cache_;
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(linear.matrix, Pack(key, stored, f32));
    linear.memory = memory_;
  }
  packed_bytes_ += linear.bytes();
  multiply_adds_ += int64_t{stored.source.n} * stored.source.k;
  integer_products_ = integer_products_ || linear.integer();
  return linear;
}

Status WeightLoader::CheckStackRows(const std::string& name, int32_t n) const {
  if (n % kernels::kPanel == 0) return OkStatus();
  return Unimplemented(fmt::format("{}: tensor {} holds matrices of {} rows; supported are "
                                   "multiples of {}",
                                   checkpoint_->path(), name, n, kernels::kPanel),
                       name);
}

std::vector<Linear> WeightLoader::Split(const Linear& whole, int32_t count, int32_t n) {
  std::vector<Linear> parts(count, whole);
  for (int32_t i = 0; i < count; ++i) {
    parts[i].matrix.n = n;
    parts[i].matrix.data += whole.matrix.panel_bytes * (i * (n / kernels::kPanel));
  }
  return parts;
}

Result<std::vector<Linear>> WeightLoader::LoadStack(const std::string& name, int32_t count,
                                                    int32_t n, int32_t k) {
  LOCKSTEP_RETURN_IF_ERROR(CheckStackRows(name, n));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Linear whole, LoadLinear(name, count * n, k, {.bias = "", .rows = {}, .stack = count}));
  return Split(whole, count, n);
}

Result<WeightLoader::Turned> WeightLoader::LoadTurned(const std::string& name, int32_t count,
                                                      int32_t n, int32_t rest, int32_t k) {
  LOCKSTEP_RETURN_IF_ERROR(CheckStackRows(name, k));
  LOCKSTEP_RETURN_IF_ERROR(CheckStackRows(name, rest));
  LOCKSTEP_ASSIGN_OR_RETURN(StoredMatrix stored,
                            storage_->Find(*checkpoint_, name, count * (n + rest), k, 0));
  // Elements that are copied as they are, of floats, or expanded.
  const quant::Format& from = *stored.source.format;
  const quant::Format* format = from.integer() ? quant::FindFormat("F32") : &from;
  const size_t size = format->block_bytes[0];
  std::vector<std::byte> turned(size_t(count) * k * n * size);
  std::vector<float> expanded(k);
  for (int32_t i = 0; i < count; ++i) {
    for (int32_t r = 0; r < n; ++r) {
      const int32_t row = i * (n + rest) + r;
      const std::byte* elements = reinterpret_cast<const std::byte*>(expanded.data());
      if (from.integer()) {
        quant::ExpandRow(stored.source, row, expanded.data());
      } else {
        elements = stored.source.Row(row).plane[0];
      }
      for (int32_t c = 0; c < k; ++c) {
        std::memcpy(&turned[((size_t(i) * k + c) * n + r) * size], elements + c * size, size);
      }
    }
  }
  Turned parts;
  const StoredMatrix of_turned{{format, {{turned.data()}}, count * k, n, {}}, stored.tensors};
  LOCKSTEP_ASSIGN_OR_RETURN(const Linear first, Take(name + " turned", of_turned, f32()));
  parts.turned = Split(first, count, k);

  std::vector<int32_t> rows;
  for (int32_t i = 0; i < count; ++i) {
    for (int32_t r = 0; r < rest; ++r) rows.push_back(i * (n + rest) + n + r);
  }
  stored.source.rows = rows;
  stored.source.n = count * rest;
  LOCKSTEP_ASSIGN_OR_RETURN(const Linear second, Take(name, stored, f32()));
  parts.rest = Split(second, count, rest);
  return parts;
}

Result<std::vector<float>> WeightLoader::LoadVector(const std::string& name, int32_t n) {
  LOCKSTEP_ASSIGN_OR_RETURN(const StoredMatrix stored, FindVector(*checkpoint_, name, n));
  Use(*stored.tensors.front());
  std::vector<float> values(n);
  quant::ExpandRow(stored.source, 0, values.data());
  return values;
}

Result<std::vector<float>> WeightLoader::LoadTable(const std::string& name, int32_t n, int32_t k,
                                                   int32_t stack) {
  LOCKSTEP_ASSIGN_OR_RETURN(const StoredMatrix stored,
                            FindPlainMatrix(*checkpoint_, name, n, k, stack));
  Use(*stored.tensors.front());
  std::vector<float> values(size_t(n) * k);
  for (int32_t i = 0; i < n; ++i) quant::ExpandRow(stored.source, i, &values[size_t(i) * k]);
  return values;
}

Result<Embedding> WeightLoader::LoadEmbedding(const std::string& name, int32_t vocab_size,
                                              int32_t d_model) {
  LOCKSTEP_ASSIGN_OR_RETURN(const StoredMatrix stored,
                            storage_->Find(*checkpoint_, name, vocab_size, d_model, 0));
  for (const TensorView* tensor : stored.tensors) Use(*tensor);
  return Embedding(checkpoint_, stored.source);
}

bool WeightLoader::IsIgnored(const std::string& name) const {
  return ignored_.contains(name) ||
         std::any_of(ignored_prefixes_.begin(), ignored_prefixes_.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

Status WeightLoader::Finish() {
  for (Used& used : used_) {
    if (!used.hash) used.hash = HashTensor(*used.tensor, context());
    hash_ = MixHash(hash_, *used.hash);
    if (writer_ != nullptr) writer_->AddTensorHash(used.tensor->name, *used.hash);
  }
  for (const TensorView& tensor : checkpoint_->tensors()) {
    if (!used_index_.contains(&tensor) && !IsIgnored(tensor.name)) {
      return Unimplemented(fmt::format("{}: tensor {} has no place in this architecture",
                                       checkpoint_->path(), tensor.name),
                           tensor.name);
    }
  }
  // What is still needed of the files comes back by itself.
  checkpoint_->Advise(MappedFile::Advice::kDontNeed);
  if (writer_ == nullptr) return OkStatus();
  const Status kept = writer_->Commit();
  if (!kept.ok()) LoseCache(kept);
  return OkStatus();
}

}  // namespace lockstep
