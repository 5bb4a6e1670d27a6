#include "weights/checkpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "weights/printable.h"
#include "weights/shard_index.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxIndexBytes = 256 << 20;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string InFolder(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

// "m/" and "m" are the same folder; a file's name cannot end in a slash.
std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

enum class FileKind { kGguf, kSafetensors, kUnknown };

FileKind DetectFileKind(const MappedFile& file) {
  const auto bytes = file.bytes();
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0) return FileKind::kGguf;
  if (file.path().ends_with(".gguf")) return FileKind::kGguf;
  if (file.path().ends_with(".safetensors")) return FileKind::kSafetensors;
  // A header's length, then the header.
  if (bytes.size() > 8 && bytes[8] == std::byte{'{'}) return FileKind::kSafetensors;
  return FileKind::kUnknown;
}

}  // namespace

std::string_view CheckpointKindName(CheckpointKind kind) {
  switch (kind) {
    case CheckpointKind::kGguf:
      return "gguf";
    case CheckpointKind::kSafetensors:
      return "safetensors";
    case CheckpointKind::kHfFolder:
      return "hf folder";
  }
  return "unknown";
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::Open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("a model path must not contain a zero byte");
  }
  std::shared_ptr<Checkpoint> checkpoint(new Checkpoint());
  checkpoint->path_ = WithoutTrailingSlashes(path);
  std::error_code ignored;  // whatever is wrong, opening it as a file says it
  const bool folder = fs::is_directory(checkpoint->path_, ignored);
  LOCKSTEP_RETURN_IF_ERROR(folder ? checkpoint->OpenFolder() : checkpoint->OpenFile());
  checkpoint->IndexTensors();
  return std::shared_ptr<const Checkpoint>(std::move(checkpoint));
}

Status Checkpoint::OpenFile() {
  FileKind kind = FileKind::kUnknown;
  {
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path_));
    kind = DetectFileKind(file);
  }
  switch (kind) {
    case FileKind::kGguf: {
      kind_ = CheckpointKind::kGguf;
      LOCKSTEP_ASSIGN_OR_RETURN(gguf_, GgufFile::Open(path_));
      return OkStatus();
    }
    case FileKind::kSafetensors: {
      kind_ = CheckpointKind::kSafetensors;
      LOCKSTEP_ASSIGN_OR_RETURN(auto file, SafetensorsFile::Open(path_));
      shards_.push_back(std::move(file));
      return OkStatus();
    }
    case FileKind::kUnknown:
      break;
  }
  return InvalidArgument(path_ + ": is neither a GGUF nor a safetensors file");
}

Status Checkpoint::OpenFolder() {
  kind_ = CheckpointKind::kHfFolder;
  LOCKSTEP_ASSIGN_OR_RETURN(config_, HfConfig::Load(InFolder(path_, "config.json")));
  const std::string generation = InFolder(path_, "generation_config.json");
  if (Exists(generation)) {
    LOCKSTEP_ASSIGN_OR_RETURN(generation_config_, HfConfig::Load(generation));
  }
  // With both present the single file wins, as in transformers.
  const std::string single = InFolder(path_, "model.safetensors");
  if (Exists(single)) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto file, SafetensorsFile::Open(single));
    shards_.push_back(std::move(file));
    return OkStatus();
  }
  const std::string index = InFolder(path_, "model.safetensors.index.json");
  if (Exists(index)) return OpenShards(index);
  return NotFound(
      path_ +
      ": holds neither model.safetensors nor model.safetensors.index.json; other weight "
      "files cannot be read");
}

Status Checkpoint::OpenShards(const std::string& index_path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile map, MappedFile::Open(index_path));
  if (map.size() > kMaxIndexBytes) {
    return DataLoss(fmt::format("{}: has {} bytes; an index may have {}", index_path, map.size(),
                                kMaxIndexBytes));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const ShardIndex index,
      ParseShardIndex({reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()},
                      index_path));
  std::unordered_map<std::string_view, const SafetensorsFile*> files;
  for (const std::string& name : index.shards) {
    auto file = SafetensorsFile::Open(InFolder(path_, name));
    if (!file.ok()) return file.status().WithContext("a shard named by " + index_path);
    files.emplace(name, file->get());
    for (const TensorView& tensor : (*file)->tensors()) {
      const auto placed = index.shard_of.find(tensor.name);
      const std::string shown = Printable(tensor.name);
      if (placed == index.shard_of.end()) {
        return DataLoss(
            fmt::format("{}: does not list tensor '{}', which {} holds", index_path, shown, name),
            shown);
      }
      if (placed->second != name) {
        return DataLoss(fmt::format("{}: places tensor '{}' in {}, but {} holds one too",
                                    index_path, shown, placed->second, name),
                        shown);
      }
    }
    shards_.push_back(std::move(*file));
  }
  for (const auto& [tensor, shard] : index.shard_of) {
    if (files.at(shard)->FindTensor(tensor) == nullptr) {
      const std::string shown = Printable(tensor);
      return DataLoss(fmt::format("{}: places tensor '{}' in {}, which does not hold it",
                                  index_path, shown, shard),
                      shown);
    }
  }
  return OkStatus();
}

void Checkpoint::IndexTensors() {
  if (gguf_) tensors_.assign(gguf_->tensors().begin(), gguf_->tensors().end());
  for (const auto& shard : shards_) {
    tensors_.insert(tensors_.end(), shard->tensors().begin(), shard->tensors().end());
  }
  for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
}

const TensorView* Checkpoint::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

Result<const TensorView*> Checkpoint::Get(std::string_view name) const {
  const TensorView* tensor = Find(name);
  if (tensor == nullptr) {
    return NotFound(fmt::format("{}: tensor '{}' is missing", path_, Printable(name)),
                    Printable(name));
  }
  return tensor;
}

Result<std::vector<int32_t>> Checkpoint::HfEosTokenIds() const {
  std::set<int32_t> ids;
  const auto add = [&ids](const HfConfig& config) -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto more, config.EosTokenIds());
    ids.insert(more.begin(), more.end());
    return OkStatus();
  };
  if (config_) {
    LOCKSTEP_RETURN_IF_ERROR(add(*config_));
    LOCKSTEP_ASSIGN_OR_RETURN(const auto text_config, config_->GetObjectOr("text_config"));
    if (text_config) LOCKSTEP_RETURN_IF_ERROR(add(*text_config));
  }
  if (generation_config_) LOCKSTEP_RETURN_IF_ERROR(add(*generation_config_));
  return std::vector<int32_t>(ids.begin(), ids.end());
}

void Checkpoint::Advise(MappedFile::Advice advice) const {
  for (const MappedFile* file : files()) file->Advise(advice);
}

void Checkpoint::Advise(MappedFile::Advice advice, std::span<const std::byte> bytes) const {
  for (const MappedFile* file : files()) {
    const auto whole = file->bytes();
    if (bytes.data() < whole.data() || bytes.data() >= whole.data() + whole.size()) continue;
    file->Advise(advice, bytes.data() - whole.data(), bytes.size());
  }
}

std::vector<const MappedFile*> Checkpoint::files() const {
  std::vector<const MappedFile*> files;
  if (gguf_) {
    for (const MappedFile& part : gguf_->parts()) files.push_back(&part);
  }
  for (const auto& shard : shards_) files.push_back(&shard->map());
  return files;
}

}  // namespace lockstep
